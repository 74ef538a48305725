// EngineRunner: units by real inference. Reads the task, loads the model when the first unit needs
// it, runs every map of the unit, scores the outputs.
#pragma once

#include <memory>
#include <string>

#include "worker/service/unit_runner.hpp"

namespace kvsweep::service {

struct EngineRunnerOptions {
  int threads = 1;
  int64_t cache_budget_bytes = 0;  // 0 = the engine's default
  std::string data_dir;
};

// Keeps the last model and every task it has opened. Expected failures come back as the failure
// class of the result: what is wrong with a folder, a spec or a map is bad_input.
class EngineRunner final : public UnitRunner {
 public:
  explicit EngineRunner(const EngineRunnerOptions& options);
  ~EngineRunner() override;

  wire::UnitResult run(const wire::Unit& unit, UnitCounters& counters,
                       const std::atomic<bool>& cancel) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::service
