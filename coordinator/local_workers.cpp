#include "coordinator/local_workers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/log.hpp"
#include "core/text.hpp"

extern char** environ;

namespace kvsweep::coordinator {

namespace {

constexpr int64_t kQuickDeathMs = 10000;
constexpr int64_t kFirstPauseMs = 500;
constexpr int64_t kLongestPauseMs = 30000;
constexpr int kQuickDeaths = 5;
constexpr int64_t kTermPatienceMs = 5000;
constexpr size_t kTailLines = 4;
constexpr std::streamoff kTailBytes = 4096;

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

// Attributes and file actions of one spawn, freed at the end of the scope.
struct SpawnSetup {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;

  explicit SpawnSetup(const std::string& log) {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) sigaddset(&usual, signal);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

LocalWorkers::LocalWorkers(const LocalWorkerOptions& options, const Clock& clock)
    : options_(options), clock_(clock) {}

LocalWorkers::~LocalWorkers() {
  signal_all(SIGKILL);
  wait_all(kTermPatienceMs);
}

Status LocalWorkers::start(const std::string& endpoint) {
  endpoint_ = endpoint;
  if (options_.count == 0) return {};
  if (options_.log_dir.empty()) {
    options_.log_dir =
        (std::filesystem::temp_directory_path() / fmt::format("kvsweep-{}", getpid())).string();
  }
  std::error_code error;
  std::filesystem::create_directories(options_.log_dir, error);
  if (error) {
    return io_error(
        fmt::format("cannot create the log folder {}: {}", options_.log_dir, error.message()));
  }
  for (int i = 1; i <= options_.count; ++i) {
    slots_.push_back({.worker_id = fmt::format("local-{}", i),
                      .log = fmt::format("{}/worker-{}.log", options_.log_dir, i)});
  }
  for (Slot& slot : slots_) KVSWEEP_TRY(spawn(slot));
  return {};
}

std::vector<std::string> LocalWorkers::command(const Slot& slot) const {
  std::vector<std::string> words = {options_.program,
                                    "--connect",
                                    endpoint_,
                                    "--worker-id",
                                    slot.worker_id,
                                    "--threads",
                                    std::to_string(options_.threads),
                                    "--exit-with-parent",
                                    std::to_string(getpid())};
  if (!options_.data_dir.empty()) {
    words.insert(words.end(), {"--data-dir", options_.data_dir});
  }
  if (options_.cache_budget_bytes > 0) {
    words.insert(words.end(), {"--cache-budget", std::to_string(options_.cache_budget_bytes)});
  }
  return words;
}

Status LocalWorkers::spawn(Slot& slot) {
  std::vector<std::string> words = command(slot);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const SpawnSetup setup(slot.log);
  const int error = posix_spawn(&slot.pid, options_.program.c_str(), &setup.files,
                                &setup.attributes, arguments.data(), environ);
  if (error != 0) {
    slot.pid = -1;
    return io_error(fmt::format("cannot start the worker program {} (log {}): {}", options_.program,
                                slot.log, std::strerror(error)));
  }
  slot.started_ms = clock_.steady_ms();
  return {};
}

void LocalWorkers::reap(Slot& slot, int status) {
  slot.pid = -1;
  slot.last_end = describe_end(status);
  const int64_t now = clock_.steady_ms();
  const bool quick = now - slot.started_ms < kQuickDeathMs;
  slot.quick_deaths = quick ? slot.quick_deaths + 1 : 0;
  slot.given_up = slot.quick_deaths >= kQuickDeaths;
  const int doublings = std::max(0, slot.quick_deaths - 1);
  slot.restart_ms = now + std::min(kFirstPauseMs << doublings, kLongestPauseMs);
  log::warn("workers", fmt::format("{} ended ({}){}", slot.worker_id, slot.last_end,
                                   slot.given_up ? "; given up after five quick deaths" : ""));
}

Status LocalWorkers::poll(bool draining, size_t workers_connected) {
  if (slots_.empty()) return {};
  for (Slot& slot : slots_) {
    int status = 0;
    if (slot.pid > 0 && waitpid(slot.pid, &status, WNOHANG) == slot.pid) reap(slot, status);
    const bool due = slot.pid < 0 && !slot.given_up && clock_.steady_ms() >= slot.restart_ms;
    if (due && !draining) KVSWEEP_TRY(spawn(slot));
  }
  const bool none_left =
      std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.given_up; });
  if (!none_left || draining || workers_connected > 0) return {};
  const Slot& last = slots_.back();
  return io_error(
      fmt::format("no local worker stays alive: {} died {} times within {} s of its start ({}); "
                  "the end of {}: {}",
                  last.worker_id, last.quick_deaths, kQuickDeathMs / 1000, last.last_end, last.log,
                  tail(last)));
}

void LocalWorkers::kill(const std::string& worker_id) {
  for (const Slot& slot : slots_) {
    if (slot.worker_id == worker_id && slot.pid > 0) ::kill(slot.pid, SIGKILL);
  }
}

void LocalWorkers::signal_all(int signal) {
  for (const Slot& slot : slots_) {
    if (slot.pid > 0) ::kill(slot.pid, signal);
  }
}

// On real time: a manual clock would not move while we wait.
bool LocalWorkers::wait_all(int64_t ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (true) {
    bool running = false;
    for (Slot& slot : slots_) {
      if (slot.pid <= 0) continue;
      const pid_t ended = waitpid(slot.pid, nullptr, WNOHANG);
      if (ended == slot.pid || (ended < 0 && errno == ECHILD)) slot.pid = -1;
      running = running || slot.pid > 0;
    }
    if (!running) return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void LocalWorkers::stop(int64_t patience_ms) {
  if (wait_all(patience_ms)) return;
  signal_all(SIGTERM);
  if (wait_all(kTermPatienceMs)) return;
  signal_all(SIGKILL);
  wait_all(kTermPatienceMs);
}

std::string LocalWorkers::tail(const Slot& slot) const {
  std::ifstream file(slot.log, std::ios::binary | std::ios::ate);
  if (!file) return "(no log)";
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  if (lines.size() > kTailLines) lines.erase(lines.begin(), lines.end() - kTailLines);
  return lines.empty() ? "(empty log)" : join(lines, " | ");
}

}  // namespace kvsweep::coordinator
