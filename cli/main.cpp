#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/signals.hpp"
#include "cli/verb.hpp"

int main(int argc, char** argv) {
  using namespace kvsweep;
  const SystemClock clock;
  cli::Context context{clock, cli::stop_counter(), cli::Terminal(stdout), cli::Terminal(stderr)};
  try {
    return cli::run_command(std::vector<std::string>(argv + 1, argv + argc), context);
  } catch (const std::exception& error) {
    context.err.print(std::string("kvsweep: internal error: ") + error.what() +
                      "; please report this with the command that was run\n");
    return cli::kFailed;
  }
}
