#include "core/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

namespace kvsweep::log {
namespace {

spdlog::level::level_enum native(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::logger> make_logger(Level level, spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("kvsweep", std::move(sink));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %-7l %v", spdlog::pattern_time_type::utc);
  logger->set_level(native(level));
  logger->flush_on(spdlog::level::debug);
  return logger;
}

std::mutex mutex;
std::shared_ptr<spdlog::logger> current;  // guarded by `mutex`
std::function<void()> hook;               // guarded by `mutex`

std::shared_ptr<spdlog::logger> logger() {
  const std::lock_guard lock(mutex);
  if (!current) {
    current = make_logger(Level::info, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  }
  return current;
}

}  // namespace

void init(Level level, const std::string& file) {
  std::shared_ptr<spdlog::logger> made;
  std::string problem;
  if (!file.empty()) {
    try {
      made = make_logger(level, std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    } catch (const spdlog::spdlog_ex& error) {
      problem = error.what();
    }
  }
  if (!made) made = make_logger(level, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  {
    const std::lock_guard lock(mutex);
    current = made;
  }
  if (!problem.empty()) warn("log", "writing to standard error instead: " + problem);
}

void before_write(std::function<void()> next) {
  const std::lock_guard lock(mutex);
  hook = std::move(next);
}

void write(Level level, std::string_view part, const std::string& message) {
  const std::shared_ptr<spdlog::logger> target = logger();
  if (!target->should_log(native(level))) return;
  {
    const std::lock_guard lock(mutex);
    if (hook) hook();
  }
  target->log(native(level), "{}: {}", part, message);
}

std::optional<Level> level_from(std::string_view name) {
  if (name == "debug") return Level::debug;
  if (name == "info") return Level::info;
  if (name == "warn") return Level::warn;
  if (name == "error") return Level::error;
  return std::nullopt;
}

}  // namespace kvsweep::log
