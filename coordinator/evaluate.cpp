#include <fmt/format.h>

#include <deque>

#include "coordinator/baseline_run.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/host.hpp"

namespace kvsweep::coordinator {

namespace {

// One map against the baseline on one task.
struct Comparison {
  BaselineRun baseline;
  int evaluation = -1;
  bool done = false;
  EvaluateRow row;
};

class EvaluateRun final : public Driver {
 public:
  EvaluateRun(const EvaluateRequest& request, ModelContext model, store::Store& store,
              const Clock& clock, const WorkloadOptions& options)
      : map_(request.map), workload_(std::move(model), store, clock, options) {
    const PrecisionMap baseline = baseline_map(map_.scheme, map_.num_layers());
    for (const TaskSpec& task : request.tasks) {
      comparisons_.push_back({.baseline = BaselineRun(workload_, task, baseline)});
    }
  }

  Workload& workload() override { return workload_; }
  std::optional<std::string> refuses(const wire::Hello& worker) const override;
  Status admitted(const wire::Hello& worker) override;
  Status step() override;
  Result<bool> more() override { return false; }
  bool finished() const override;
  Status interrupted() override { return {}; }
  Status fail(const std::string& reason) override;
  StudyProgress progress() const override;
  int64_t news() const override { return news_; }

  const std::optional<Error>& failure() const { return failure_; }
  std::vector<EvaluateRow> rows() const;

 private:
  Status advance(Comparison& comparison);
  void finish(Comparison& comparison);

  PrecisionMap map_;
  Workload workload_;
  std::deque<Comparison> comparisons_;
  std::optional<Error> failure_;
  int64_t news_ = 0;
};

std::optional<std::string> EvaluateRun::refuses(const wire::Hello& worker) const {
  const std::string& bound = workload_.model().numerics_class;
  if (bound.empty() || bound == worker.numerics_class) return std::nullopt;
  return fmt::format(
      "this evaluation is measured in numerics class '{}', and this worker computes in '{}': "
      "results of two classes cannot be compared",
      bound, worker.numerics_class);
}

Status EvaluateRun::admitted(const wire::Hello& worker) {
  if (workload_.model().numerics_class.empty()) workload_.bind_class(worker.numerics_class);
  return {};
}

Status EvaluateRun::step() {
  if (workload_.model().numerics_class.empty()) return {};
  workload_.take_ended();
  for (Comparison& comparison : comparisons_) {
    if (!comparison.done && !failure_) KVSWEEP_TRY(advance(comparison));
  }
  return {};
}

Status EvaluateRun::advance(Comparison& comparison) {
  BaselineRun& baseline = comparison.baseline;
  KVSWEEP_TRY(baseline.step());
  if (baseline.failure()) failure_ = baseline.failure();
  if (!baseline.complete()) return {};
  if (comparison.evaluation < 0) {
    KVSWEEP_ASSIGN(comparison.evaluation, workload_.begin(baseline.request(map_)));
  }
  const Evaluation& evaluation = workload_.evaluation(comparison.evaluation);
  if (evaluation.fate() == Evaluation::Fate::failed) failure_ = evaluation.failure();
  if (evaluation.fate() == Evaluation::Fate::complete) finish(comparison);
  return {};
}

void EvaluateRun::finish(Comparison& comparison) {
  const BaselineRun& baseline = comparison.baseline;
  const Evaluation& evaluation = workload_.evaluation(comparison.evaluation);
  comparison.row = {.task = baseline.task(),
                    .mode = mode_of(baseline.task().protocol, baseline.task().metric),
                    .examples = baseline.examples(),
                    .reused = evaluation.reused(),
                    .map = evaluation.measurements(),
                    .baseline = baseline.measurements()};
  comparison.done = true;
  ++news_;
}

bool EvaluateRun::finished() const {
  return failure_ || std::all_of(comparisons_.begin(), comparisons_.end(),
                                 [](const Comparison& comparison) { return comparison.done; });
}

Status EvaluateRun::fail(const std::string& reason) {
  failure_ = Error{ErrorCode::internal, reason};
  return {};
}

StudyProgress EvaluateRun::progress() const {
  StudyProgress progress{.study = "evaluate",
                         .trials_done = static_cast<int64_t>(rows().size()),
                         .trials_budget = static_cast<int64_t>(comparisons_.size())};
  const bool waiting = workload_.model().numerics_class.empty();
  progress.phase = waiting ? "waiting for a worker" : "evaluating";
  return progress;
}

std::vector<EvaluateRow> EvaluateRun::rows() const {
  std::vector<EvaluateRow> rows;
  for (const Comparison& comparison : comparisons_) {
    if (comparison.done) rows.push_back(comparison.row);
  }
  return rows;
}

}  // namespace

Result<EvaluateReport> evaluate(const EvaluateRequest& request, store::Store& store,
                                const CoordinatorOptions& options, const Clock& clock,
                                const std::atomic<int>& stop, const ProgressSink& progress) {
  KVSWEEP_ASSIGN(const ModelGeometry geometry, read_geometry(request.model_dir));
  KVSWEEP_TRY(check_map(request.map, geometry));
  if (request.tasks.empty()) return bad_input("an evaluation needs at least one task; give --task");
  KVSWEEP_ASSIGN(const std::string hash, model_hash(request.model_dir));
  KVSWEEP_TRY(store.put_model(hash, request.model_dir, geometry));
  EvaluateRun run(request,
                  {.model_dir = request.model_dir, .model_hash = hash, .base = request.base}, store,
                  clock, workload_options(options));
  KVSWEEP_ASSIGN(const auto host, Host::start(store, clock, options, {}));
  KVSWEEP_ASSIGN(const RunEnd end, host->run(run, stop, progress));
  host->finish(stop.load() >= 2);
  if (run.failure()) return *run.failure();
  return EvaluateReport{.rows = run.rows(),
                        .model_hash = hash,
                        .numerics_class = run.workload().model().numerics_class,
                        .interrupted = end == RunEnd::interrupted};
}

}  // namespace kvsweep::coordinator
