// The real `kvsweep` as a user runs it: one command, its exit code and what it wrote.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kvsweep::test {

struct CliResult {
  int code = -1;  // exit status, 128 + signal, or -1 when it did not end in time
  std::string out;
  std::string err;
};

struct CliCommand {
  std::vector<std::string> words;  // without "kvsweep"
  std::map<std::string, std::string> environment;
  std::string folder;    // working folder; "" = ours
  std::string out_file;  // where standard output goes; "" = captured
  int64_t timeout_ms = 60000;
};

std::string kvsweep_program();
CliResult run_cli(const CliCommand& command);
inline CliResult run_cli(const std::vector<std::string>& words) {
  CliCommand command;
  command.words = words;
  return run_cli(command);
}

}  // namespace kvsweep::test
