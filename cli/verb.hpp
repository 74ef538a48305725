// Verb: one subcommand of kvsweep. One file under verbs/ plus one line in verbs.def.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.hpp"
#include "cli/terminal.hpp"
#include "core/clock.hpp"
#include "core/result.hpp"

namespace kvsweep::cli {

// Exit codes, documented in `kvsweep --help`.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kLossy = 3;
inline constexpr int kInterrupted = 130;

// What a verb may use of the process.
struct Context {
  const Clock& clock;
  std::atomic<int>& stop;  // 1 = Ctrl-C or SIGTERM once, 2 = twice (cli/signals.hpp)
  Terminal out;            // standard output: results
  Terminal err;            // standard error: progress and errors
};

class Verb {
 public:
  virtual ~Verb() = default;
  // Declares options, with their places in this object.
  virtual void declare(Options& options) = 0;
  // Runs after the options are set; returns the exit code. An error is printed as one sentence
  // and ends with kFailed.
  virtual Result<int> run(Context& context) = 0;
};

struct VerbInfo {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Verb> (*make)();
};
const std::vector<VerbInfo>& verbs();  // in the order of verbs.def

// Parses and runs one command line; returns the exit code.
int run_command(const std::vector<std::string>& arguments, Context& context);

}  // namespace kvsweep::cli
