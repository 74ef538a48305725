// The real worker service over real sockets, with a formula instead of a model (fake_runner.hpp).
#include <cstdio>
#include <cstring>

#include "core/log.hpp"
#include "tests/support/fake_runner.hpp"
#include "worker/service/identity.hpp"
#include "worker/service/service.hpp"
#include "worker/service/stop_signal.hpp"
#include "worker/service/worker_options.hpp"

int main(int argc, char** argv) {
  const auto options = kvsweep::service::parse_worker_options({argv + 1, argv + argc});
  if (!options.ok()) {
    std::fprintf(stderr, "fake_worker: %s\n", options.error().message.c_str());
    return kvsweep::service::kExitUsage;
  }
  kvsweep::log::init(*kvsweep::log::level_from(options->log_level));
  if (options->parent > 0 && !kvsweep::service::exit_with_parent(options->parent).ok()) return 1;
  const kvsweep::test::FakeOptions fake = kvsweep::test::fake_options_from_environment();
  kvsweep::test::FakeRunner runner(fake);
  return kvsweep::service::serve(
      {.endpoint = options->endpoint,
       .hello = kvsweep::service::make_hello(*options, "0", 1, fake.numerics_class),
       .idle_timeout_ms = options->idle_timeout_s * 1000,
       .once = options->once},
      runner);
}
