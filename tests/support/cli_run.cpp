#include "tests/support/cli_run.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/temp_dir.hpp"

namespace kvsweep::test {
namespace {

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// After fork: nothing here allocates that another thread might hold a lock for, since the tests
// are single-threaded.
[[noreturn]] void become(const CliCommand& command, const std::string& out,
                         const std::string& err) {
  const int in_fd = ::open("/dev/null", O_RDONLY);
  const int out_fd = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (in_fd < 0 || out_fd < 0 || err_fd < 0) ::_exit(125);
  ::dup2(in_fd, 0);
  ::dup2(out_fd, 1);
  ::dup2(err_fd, 2);
  if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) ::_exit(125);
  ::unsetenv("KVSWEEP_DATA_DIR");
  ::unsetenv("KVSWEEP_WORKER");
  for (const auto& [name, value] : command.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> words = command.words;
  words.insert(words.begin(), kvsweep_program());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(126);
}

int wait_for(pid_t pid, int64_t timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::string kvsweep_program() {
  return KVSWEEP_PROGRAM;
}

CliResult run_cli(const CliCommand& command) {
  const TempDir dir;
  const std::string out = command.out_file.empty() ? dir.file("out") : command.out_file;
  const std::string err = dir.file("err");
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) become(command, out, err);
  CliResult result;
  result.code = wait_for(pid, command.timeout_ms);
  if (command.out_file.empty()) result.out = slurp(out);
  result.err = slurp(err);
  return result;
}

}  // namespace kvsweep::test
