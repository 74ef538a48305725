// A UnitRunner whose "model" is a formula: outcomes are a deterministic function of map and
// example, as with real inference, but take milliseconds. With faults to order.
#pragma once

#include <cstdint>
#include <string>

#include "worker/service/unit_runner.hpp"

namespace kvsweep::test {

// Read from the variable KVSWEEP_FAKE, "key=value key=value":
struct FakeOptions {
  int64_t examples = 12;  // size of every task
  int64_t ms = 0;         // per example
  std::string numerics_class = "fake/1";
  std::string data = "d1";  // another word: another data set, with other hashes
  std::string log;          // append "MAP_ID SPLIT EXAMPLE MODE" per example that is run
  // Faults: at the Nth measure unit of this process (0 = never)
  int64_t die_at = 0;    // SIGKILL itself before the result
  int64_t hang_at = 0;   // never return, never look at `cancel`
  int64_t oom_at = 0;    // throw std::bad_alloc
  int64_t throw_at = 0;  // throw std::runtime_error
  // Paths: die, or hang, in the measure unit of whoever is the first to create the file.
  std::string die_once;
  std::string hang_once;
  bool nan_k2 = false;  // KL is NaN under maps whose first layer has 2-bit keys
  bool bad_k2 = false;  // such maps fail as bad_input
};
FakeOptions fake_options_from_environment();

class FakeRunner final : public service::UnitRunner {
 public:
  explicit FakeRunner(FakeOptions options) : options_(std::move(options)) {}
  wire::UnitResult run(const wire::Unit& unit, service::UnitCounters& counters,
                       const std::atomic<bool>& cancel) override;

 private:
  wire::UnitResult describe(const wire::Unit& unit) const;
  void inject_faults();
  Measurement measure(const wire::Unit& unit, const PrecisionMap& map, int64_t example) const;

  FakeOptions options_;
  int64_t units_ = 0;
};

// Share of quality lost under `map`, 0 for the baseline: per layer 0.1, 0.02, 0.004 for keys and
// half of it for values at 2, 4, 8 bits, the first layer counting three times; mean over layers.
double fake_damage(const PrecisionMap& map);

std::string fake_example_hash(const std::string& data, const TaskProtocol& protocol,
                              int64_t example);

// What one example scores: token agreement = 1 - damage * (0.5 + jitter), jitter in [0, 1) by
// example.
double fake_agreement(const PrecisionMap& map, int64_t example);

}  // namespace kvsweep::test
