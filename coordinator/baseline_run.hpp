// BaselineRun: what every map on a task is compared with. Has the task described, measures the
// baseline KV in generate mode, and, when the metric is a forced one, a second time teacher-forced
// on its own output: its agreement and KL are then measured, not assumed.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "coordinator/workload.hpp"
#include "core/study_spec.hpp"

namespace kvsweep::coordinator {

class BaselineRun {
 public:
  BaselineRun(Workload& workload, const TaskSpec& task, PrecisionMap baseline);

  // Begins what can begin. Call after anything ended.
  Status step();

  bool complete() const { return stage_ == Stage::complete; }
  const std::optional<Error>& failure() const { return failure_; }
  const TaskSpec& task() const { return task_; }

  // --- once complete
  int64_t examples() const { return examples_; }
  int64_t reused() const { return reused_; }  // of the metric's mode
  // In the metric's run mode, by example.
  const std::vector<Measurement>& measurements() const { return measurements_; }
  // What evaluates `map` on the same examples in the metric's mode.
  EvaluationRequest request(const PrecisionMap& map) const;

 private:
  enum class Stage { describing, first_run, forcing, complete };

  Status begin_first_run();
  Status finish_stage();
  Status begin(Stage stage, EvaluationRequest request);

  Workload& workload_;
  TaskSpec task_;
  PrecisionMap baseline_;
  Stage stage_ = Stage::describing;
  int evaluation_ = -1;
  int64_t examples_ = 0;
  int64_t reused_ = 0;
  std::shared_ptr<const TaskData> data_;
  std::shared_ptr<const References> references_;
  std::vector<Measurement> measurements_;
  std::optional<Error> failure_;
};

}  // namespace kvsweep::coordinator
