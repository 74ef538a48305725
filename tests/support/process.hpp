// Child processes of a test: started, waited for, signalled; killed when the test ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kvsweep::test {

struct Command {
  std::vector<std::string> words;                  // program and arguments
  std::map<std::string, std::string> environment;  // added to ours
  std::string output;                              // file for standard output and error
};

class Process {
 public:
  Process() = default;
  explicit Process(const Command& command);
  ~Process();  // kills and reaps
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  bool running();
  void signal(int number) const;
  // Exit status, or 128 + signal; nullopt when it still runs after `ms`.
  std::optional<int> wait(int64_t ms);

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// Waits until `condition` holds; false after `ms`.
bool eventually(int64_t ms, const std::function<bool()>& condition);

}  // namespace kvsweep::test
