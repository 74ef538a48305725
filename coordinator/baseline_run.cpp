#include "coordinator/baseline_run.hpp"

#include <fmt/format.h>

namespace kvsweep::coordinator {

BaselineRun::BaselineRun(Workload& workload, const TaskSpec& task, PrecisionMap baseline)
    : workload_(workload), task_(task), baseline_(std::move(baseline)) {
  workload_.describe(task_.protocol);
}

Status BaselineRun::step() {
  while (!complete() && !failure_) {
    if (stage_ == Stage::describing) {
      failure_ = workload_.task_failure(task_.protocol);
      data_ = workload_.task(task_.protocol);
      if (failure_ || !data_) return {};
      KVSWEEP_TRY(begin_first_run());
      continue;
    }
    const Evaluation& evaluation = workload_.evaluation(evaluation_);
    if (evaluation.fate() == Evaluation::Fate::running) return {};
    if (evaluation.fate() == Evaluation::Fate::failed) {
      failure_ = evaluation.failure();
      return {};
    }
    KVSWEEP_TRY(finish_stage());
  }
  return {};
}

Status BaselineRun::begin_first_run() {
  const auto size = static_cast<int64_t>(data_->example_hashes.size());
  examples_ = task_.examples == 0 ? size : task_.examples;
  if (examples_ > size) {
    failure_ = bad_input(
        fmt::format("{} examples of {} are asked for, but its split '{}' has {}; lower 'examples'",
                    examples_, task_.protocol.name, task_.protocol.split, size));
    return {};
  }
  // What the baseline says of its own accord: also what a forced run needs first.
  const RunMode first = mode_of(task_.protocol, Metric::exact_match);
  return begin(Stage::first_run,
               {.map = baseline_, .task = data_, .mode = first, .examples = examples_});
}

Status BaselineRun::begin(Stage stage, EvaluationRequest request) {
  stage_ = stage;
  KVSWEEP_ASSIGN(evaluation_, workload_.begin(std::move(request)));
  return {};
}

Status BaselineRun::finish_stage() {
  const Evaluation& evaluation = workload_.evaluation(evaluation_);
  measurements_ = evaluation.measurements();
  reused_ = evaluation.reused();
  workload_.forget(evaluation_);
  if (stage_ == Stage::forcing || mode_of(task_.protocol, task_.metric) != RunMode::forced) {
    stage_ = Stage::complete;
    return {};
  }
  references_ = references_from(measurements_);
  return begin(Stage::forcing, request(baseline_));
}

EvaluationRequest BaselineRun::request(const PrecisionMap& map) const {
  return {.map = map,
          .task = data_,
          .mode = mode_of(task_.protocol, task_.metric),
          .examples = examples_,
          .references = references_};
}

}  // namespace kvsweep::coordinator
