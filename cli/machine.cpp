#include "cli/machine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/clock.hpp"
#include "core/gguf.hpp"
#include "core/text.hpp"

extern char** environ;

namespace kvsweep::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOutput = 1 << 20;

bool executable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// The CPU share of the cgroup (version 2), rounded up; 0 = no limit.
int cgroup_processors() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  std::istringstream text(quota);
  double microseconds = 0;
  if (!(text >> microseconds)) return 0;
  return std::max(1, static_cast<int>(std::ceil(microseconds / period)));
}

int64_t now_ms() {
  return SystemClock().steady_ms();
}

// Reads until end of file, the limit or the deadline; false at the deadline.
bool read_until_end(int fd, int64_t deadline_ms, std::string& out) {
  char block[4096];
  while (true) {
    const int64_t left = deadline_ms - now_ms();
    if (left <= 0) return false;
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t count = ::read(fd, block, sizeof block);
    if (count == 0 || (count < 0 && errno != EINTR)) return true;
    if (count > 0 && out.size() < kMostOutput) out.append(block, static_cast<size_t>(count));
  }
}

// Waits for the process until the deadline; false when it had to be killed.
bool reap(pid_t pid, int64_t deadline_ms, int& status) {
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (now_ms() >= deadline_ms) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string last_line(const std::string& text) {
  const std::vector<std::string> lines = split(text, '\n');
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) {
    if (!it->empty()) return replace_invalid_utf8(it->substr(0, 300));
  }
  return "";
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string program_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 0;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
  if (count == 0) count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int limit = cgroup_processors();
  return limit > 0 ? std::min(count, limit) : count;
}

int64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

int64_t weight_bytes(const std::string& model_dir) {
  int64_t bytes = 0;
  if (is_gguf_path(model_dir)) {
    const auto file = GgufFile::open(model_dir);
    if (!file.ok()) return 0;
    for (const GgufTensor& tensor : file->tensors()) bytes += 2 * tensor.elements;
    return bytes;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(model_dir, error)) {
    std::error_code ignored;
    if (entry.path().extension() == ".safetensors") {
      bytes += static_cast<int64_t>(entry.file_size(ignored));
    }
  }
  return bytes;
}

Result<std::string> find_worker_program(const std::string& given) {
  std::string wanted = given.empty() ? environment("KVSWEEP_WORKER") : given;
  if (!wanted.empty()) {
    if (executable(wanted)) return fs::absolute(wanted).string();
    return not_found("the worker program " + wanted + " does not exist or is not executable");
  }
  const fs::path here = program_folder();
  std::vector<fs::path> places = {here / "kvsweep-worker", here / "../worker/kvsweep-worker",
                                  here / "../worker/service/kvsweep-worker"};
  for (const std::string& folder : split(environment("PATH"), ':')) {
    if (!folder.empty()) places.push_back(fs::path(folder) / "kvsweep-worker");
  }
  for (const fs::path& place : places) {
    if (executable(place)) return place.lexically_normal().string();
  }
  return not_found("kvsweep-worker is neither in " + here.string() +
                   " nor on PATH; build it, or name it with --worker-program or KVSWEEP_WORKER");
}

Error become(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> pointers;
  for (std::string& word : arguments) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  return io_error("cannot start " + program + ": " + std::strerror(errno));
}

Result<std::string> output_of(const ProgramRun& run) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return io_error("cannot make a pipe");
  if (::pipe2(err, O_CLOEXEC) != 0) {
    ::close(out[0]);
    ::close(out[1]);
    return io_error("cannot make a pipe");
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out[1], 1);
  posix_spawn_file_actions_adddup2(&files, err[1], 2);
  std::string program = run.program;
  std::string argument = run.argument;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, program.c_str(), &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  ::close(out[1]);
  ::close(err[1]);
  if (failure != 0) {
    ::close(out[0]);
    ::close(err[0]);
    return io_error("cannot start " + program + ": " + std::strerror(failure));
  }

  std::string text;
  std::string complaint;
  const int64_t deadline = now_ms() + run.timeout_ms;
  // Standard error is drained beside standard output: a program may fill either.
  std::thread drain([&] { read_until_end(err[0], deadline, complaint); });
  bool in_time = read_until_end(out[0], deadline, text);
  int status = 0;
  in_time = reap(pid, in_time ? deadline : now_ms(), status) && in_time;
  drain.join();
  ::close(out[0]);
  ::close(err[0]);
  if (!in_time) {
    return io_error(fmt::format("{} {} did not end within {}", program, argument,
                                human_seconds(static_cast<double>(run.timeout_ms) / 1000)));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  const std::string end = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                              : fmt::format("exit status {}", WEXITSTATUS(status));
  return Error{ErrorCode::internal, fmt::format("{} {} ended with {}: {}", program, argument, end,
                                                last_line(complaint))};
}

}  // namespace kvsweep::cli
