// One log line format for all programs: UTC time, level, part, message, on standard error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kvsweep::log {

enum class Level { debug, info, warn, error };

// "debug" | "info" | "warn" | "error"
std::optional<Level> level_from(std::string_view name);

// `file` empty = standard error; a file that cannot be written falls back to it, saying so. Call
// once, at start; before that, `info` and above go to standard error. All functions here are
// thread-safe.
void init(Level level, const std::string& file = "");
// `hook` runs before each line, on the thread that writes it: a live progress line is cleared
// there. Empty = none.
void before_write(std::function<void()> hook);

void write(Level level, std::string_view part, const std::string& message);

inline void debug(std::string_view part, const std::string& m) {
  write(Level::debug, part, m);
}
inline void info(std::string_view part, const std::string& m) {
  write(Level::info, part, m);
}
inline void warn(std::string_view part, const std::string& m) {
  write(Level::warn, part, m);
}
inline void error(std::string_view part, const std::string& m) {
  write(Level::error, part, m);
}

}  // namespace kvsweep::log
