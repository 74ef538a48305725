#include "coordinator/study_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/joint_maps.hpp"
#include "coordinator/replay.hpp"
#include "core/log.hpp"
#include "search/pareto/hypervolume.hpp"

namespace kvsweep::coordinator {

namespace {

constexpr double kDefaultMaxLoss = 0.02;    // for "best so far" when the spec has no limit
constexpr double kLeastRateMinutes = 0.05;  // a rate over less is noise
constexpr int64_t kTrialsBeforeAbort = 10;

ModelContext context_of(const store::StudyRow& study) {
  return {.model_dir = study.spec.model,
          .model_hash = study.model_hash,
          .base = study.spec.baseline_kv,
          .study_id = study.id,
          .numerics_class = study.numerics_class};
}

std::string full_name(const store::StudyRow& study) {
  return study.sweep.empty() ? study.name : study.sweep + "/" + study.name;
}

}  // namespace

Result<std::unique_ptr<StudyRun>> StudyRun::open(const std::string& sweep, const StudySpec& spec,
                                                 store::Store& store, const Clock& clock,
                                                 const StudyOptions& options) {
  KVSWEEP_ASSIGN(const ModelGeometry geometry, read_geometry(spec.model));
  KVSWEEP_ASSIGN(const std::string hash, model_hash(spec.model));
  KVSWEEP_ASSIGN(StudySpace space, StudySpace::make(spec, geometry));
  KVSWEEP_TRY(store.put_model(hash, spec.model, geometry));
  KVSWEEP_ASSIGN(store::StudyRow study,
                 store.create_or_resume_study(sweep, spec, hash, geometry, clock.utc_ms()));
  std::unique_ptr<StudyRun> run(
      new StudyRun(std::move(study), std::move(space), store, clock, options));
  if (run->study_.status == store::StudyStatus::finished) {
    run->phase_ = Phase::done;
    return run;
  }
  KVSWEEP_TRY(store.transaction([&] { return run->prepare(); }));
  return run;
}

StudyRun::StudyRun(store::StudyRow study, StudySpace space, store::Store& store, const Clock& clock,
                   const StudyOptions& options)
    : study_(std::move(study)),
      space_(std::move(space)),
      store_(store),
      clock_(clock),
      options_(options),
      workload_(context_of(study_), store, clock, options.workload) {}

Status StudyRun::prepare() {
  std::vector<std::vector<int>> layers;
  std::vector<std::vector<Pair>> candidates;
  for (const search::Group& group : space_.space().groups) {
    layers.push_back(group.layers);
    candidates.push_back(group.candidates);
  }
  KVSWEEP_TRY(store_.put_groups(study_.id, layers, candidates));
  KVSWEEP_TRY(store_.put_map(space_.baseline()));
  study_.reference_bytes = space_.cost(space_.baseline()).bytes;
  study_.status = store::StudyStatus::running;
  study_.status_reason.clear();
  study_.finished_utc_ms = 0;
  KVSWEEP_TRY(store_.update_study(study_));

  const SearchSpec& search = study_.spec.search;
  KVSWEEP_ASSIGN(algorithm_, search::make_algorithm(search.algorithm, space_.space(),
                                                    {.population = search.population,
                                                     .seed = search.seed,
                                                     .allowed = space_.hard_limit(),
                                                     .initial = space_.uniform_genomes()}));
  KVSWEEP_TRY(restore());
  baseline_.emplace(workload_, study_.spec.objective_task, space_.baseline());
  // Described now, so that a report task that cannot be read is known before the search, not after.
  for (const TaskSpec& task : study_.spec.report_tasks) workload_.describe(task.protocol);
  return {};
}

Status StudyRun::restore() {
  KVSWEEP_ASSIGN(std::vector<store::TrialRow> trials, store_.trials(study_.id));
  std::erase_if(trials, [](const store::TrialRow& trial) { return trial.number < 0; });
  KVSWEEP_ASSIGN(Replayed replayed, replay(*algorithm_, trials, study_.spec.limits));
  asked_ = replayed.asked;
  told_ = replayed.told;
  pending_ = std::move(replayed.pending);
  for (const store::TrialRow& trial : trials) {
    if (trial.tell_order >= 0) count(trial);
  }
  return event(asked_ == 0 ? "study_started" : "study_resumed",
               {{"asked", asked_}, {"told", told_}, {"space", space_.space().size()}});
}

std::optional<std::string> StudyRun::refuses(const wire::Hello& worker) const {
  if (study_.numerics_class.empty() || study_.numerics_class == worker.numerics_class) {
    return std::nullopt;
  }
  return fmt::format(
      "study '{}' is measured in numerics class '{}', and this worker computes in '{}': results of "
      "two classes cannot be compared; use an equal machine, or give the study another name",
      full_name(study_), study_.numerics_class, worker.numerics_class);
}

Status StudyRun::admitted(const wire::Hello& worker) {
  if (phase_ == Phase::waiting) phase_ = Phase::baseline;
  if (!study_.numerics_class.empty()) return {};
  study_.numerics_class = worker.numerics_class;
  workload_.bind_class(worker.numerics_class);
  return store_.update_study(study_);
}

Status StudyRun::step() {
  switch (phase_) {
    case Phase::baseline:
      return step_baseline();
    case Phase::searching:
      return step_search();
    case Phase::reporting:
      return step_report();
    case Phase::waiting:
    case Phase::done:
      break;
  }
  return {};
}

Status StudyRun::step_baseline() {
  KVSWEEP_TRY(baseline_->step());
  workload_.take_ended();  // the baseline's own evaluations, which it has looked at itself
  if (const auto& error = baseline_->failure()) return fail("the baseline: " + error->message);
  for (const TaskSpec& task : study_.spec.report_tasks) {
    if (const auto error = workload_.task_failure(task.protocol)) {
      return fail("a report task: " + error->message);
    }
  }
  return baseline_->complete() ? start_search() : Status{};
}

Status StudyRun::start_search() {
  const PrecisionMap map = space_.baseline();
  const MapCost cost = space_.cost(map);
  KVSWEEP_ASSIGN(const MetricValue value,
                 metric_value(study_.spec.objective_task.metric, baseline_->measurements(),
                              baseline_->measurements()));
  store::TrialRow row{.study_id = study_.id,
                      .number = -1,
                      .origin = "baseline",
                      .map_id = map_id(map),
                      .state = store::TrialState::complete,
                      .bytes = cost.bytes,
                      .effective_bits = cost.effective_bits,
                      .metric = value.value,
                      .loss = value.loss,
                      .examples = value.examples,
                      .reused = baseline_->reused() == baseline_->examples(),
                      .asked_utc_ms = clock_.utc_ms(),
                      .finished_utc_ms = clock_.utc_ms()};
  KVSWEEP_TRY(store_.put_trial(row));
  phase_ = Phase::searching;
  search_began_ms_ = clock_.steady_ms();
  ++news_;
  for (store::TrialRow& trial : std::exchange(pending_, {})) {
    KVSWEEP_TRY(begin_trial(std::move(trial)));
  }
  return step_search();
}

Status StudyRun::step_search() {
  for (const int id : workload_.take_ended()) {
    const auto it = running_.find(id);
    if (it == running_.end()) continue;
    store::TrialRow trial = std::move(it->second);
    running_.erase(it);
    KVSWEEP_TRY(end_trial(std::move(trial), workload_.evaluation(id)));
    workload_.forget(id);
    if (const auto reason = abort_reason()) return fail(*reason);
  }
  const bool asked_all = exhausted_ || asked_ >= study_.spec.search.trials;
  return asked_all && running_.empty() ? finish_search() : Status{};
}

// Candidates are asked for as many at a time as may share a unit; those of the first population
// would be the same whatever the outcome of the others.
int64_t StudyRun::candidates() const {
  const JointMaps joint =
      joint_maps(space_.baseline().scheme, baseline_->examples(), options_.workload.maps_per_unit);
  const int64_t first = study_.spec.search.population - asked_;
  return std::max(joint.search, std::min(joint.open, first));
}

Result<bool> StudyRun::more() {
  bool begun = false;
  for (int64_t left = candidates(); left > 0; --left) {
    KVSWEEP_ASSIGN(const bool more, ask());
    if (!more) break;
    begun = true;
  }
  return begun;
}

Result<bool> StudyRun::ask() {
  if (phase_ != Phase::searching || exhausted_ || asked_ >= study_.spec.search.trials) return false;
  const std::optional<search::Proposal> proposal = algorithm_->ask();
  if (!proposal) {
    exhausted_ = true;
    return true;
  }
  ++asked_;
  KVSWEEP_TRY(begin_trial({.study_id = study_.id,
                           .number = proposal->number,
                           .genome = proposal->genome,
                           .parents = proposal->parents,
                           .origin = proposal->origin,
                           .tells_before = told_,
                           .asked_utc_ms = clock_.utc_ms()}));
  return true;
}

Status StudyRun::begin_trial(store::TrialRow trial) {
  const PrecisionMap map = space_.decode(trial.genome);
  const MapCost cost = space_.cost(map);
  trial.map_id = map_id(map);
  trial.bytes = cost.bytes;
  trial.effective_bits = cost.effective_bits;
  EvaluationRequest request = baseline_->request(map);
  request.maps_per_unit =
      joint_maps(map.scheme, request.examples, options_.workload.maps_per_unit).open;
  KVSWEEP_ASSIGN(const int id, workload_.begin(std::move(request)));
  const Evaluation& evaluation = workload_.evaluation(id);
  trial.reused = evaluation.fate() == Evaluation::Fate::complete;
  KVSWEEP_TRY(store_.put_trial(trial));
  running_.emplace(id, std::move(trial));
  return {};
}

Status StudyRun::judge_trial(store::TrialRow* trial, const Evaluation& evaluation) const {
  if (evaluation.fate() == Evaluation::Fate::failed) {
    trial->state = store::TrialState::failed;
    trial->failure =
        fmt::format("{}: {}", to_string(evaluation.failure().code), evaluation.failure().message);
    return {};
  }
  KVSWEEP_ASSIGN(const MetricValue value,
                 metric_value(study_.spec.objective_task.metric, evaluation.measurements(),
                              baseline_->measurements()));
  trial->metric = value.value;
  trial->loss = value.loss;
  trial->examples = value.examples;
  trial->state = state_of(value.loss, study_.spec.limits);
  return {};
}

Status StudyRun::end_trial(store::TrialRow trial, const Evaluation& evaluation) {
  KVSWEEP_TRY(judge_trial(&trial, evaluation));
  trial.tell_order = told_++;
  trial.finished_utc_ms = clock_.utc_ms();
  algorithm_->tell(told_of(trial, study_.spec.limits));
  KVSWEEP_TRY(store_.put_trial(trial));
  count(trial);
  if (!trial.reused) ++measured_here_;
  ++news_;
  return {};
}

void StudyRun::count(const store::TrialRow& trial) {
  if (trial.state == store::TrialState::failed) ++failed_;
  if (trial.reused) ++reused_;
  if (trial.state != store::TrialState::complete) return;
  points_.push_back({trial.bytes, *trial.loss});
  const bool good = *trial.loss <= study_.spec.limits.max_loss.value_or(kDefaultMaxLoss);
  if (good && (!best_ || trial.bytes < best_->bytes)) best_ = trial;
}

std::optional<std::string> StudyRun::abort_reason() const {
  if (told_ < kTrialsBeforeAbort) return std::nullopt;
  const double share = static_cast<double>(failed_) / static_cast<double>(told_);
  if (share <= options_.abort_failure_share) return std::nullopt;
  return fmt::format(
      "{} of {} trials failed, more than the {:.0f} % that are tolerated; 'kvsweep trials' shows "
      "why each of them did",
      failed_, told_, 100 * options_.abort_failure_share);
}

Status StudyRun::finish_search() {
  std::vector<ReportedMap> maps;
  KVSWEEP_ASSIGN(const auto front, store_.front(study_.id));
  for (const store::TrialRow& trial : front) {
    if (trial.number >= 0) maps.push_back({trial.number, space_.decode(trial.genome)});
  }
  report_.emplace(workload_, study_.spec.report_tasks, space_.baseline(), std::move(maps));
  phase_ = Phase::reporting;
  ++news_;
  return step_report();
}

Status StudyRun::step_report() {
  KVSWEEP_TRY(report_->step());
  workload_.take_ended();
  for (const Json& report : report_->take_reports()) KVSWEEP_TRY(event("report", report));
  if (!report_->complete()) return {};
  std::string reason = exhausted_ ? fmt::format("space exhausted after {} maps", asked_)
                                  : fmt::format("budget of {} maps spent", asked_);
  if (!report_->problems().empty()) reason += "; report: " + report_->problems();
  return end(store::StudyStatus::finished, reason);
}

Status StudyRun::interrupted() {
  return end(store::StudyStatus::stopped, "interrupted; the same command goes on from here");
}

Status StudyRun::fail(const std::string& reason) {
  return end(store::StudyStatus::failed, reason);
}

Status StudyRun::end(store::StudyStatus status, const std::string& reason) {
  phase_ = Phase::done;
  ++news_;
  study_.status = status;
  study_.status_reason = reason;
  study_.finished_utc_ms = status == store::StudyStatus::stopped ? 0 : clock_.utc_ms();
  KVSWEEP_TRY(store_.update_study(study_));
  return event("study_" + std::string(to_string(status)), {{"reason", reason}});
}

Status StudyRun::event(const std::string& kind, Json detail) {
  log::info("study", fmt::format("{}: {} {}", full_name(study_), kind, detail.dump()));
  return store_.add_event(study_.id, kind, detail.dump(), clock_.utc_ms());
}

std::string_view StudyRun::phase_name() const {
  switch (phase_) {
    case Phase::waiting:
      return "waiting for a worker";
    case Phase::baseline:
      return "baseline";
    case Phase::searching:
      return "searching";
    case Phase::reporting:
      return "reporting";
    case Phase::done:
      break;
  }
  return to_string(study_.status);
}

StudyProgress StudyRun::progress() const {
  StudyProgress progress{.study = full_name(study_),
                         .trials_done = told_,
                         .trials_budget = study_.spec.search.trials,
                         .trials_reused = reused_,
                         .trials_failed = failed_,
                         .best = best_,
                         .phase = std::string(phase_name())};
  progress.hypervolume =
      search::hypervolume_share(points_, {study_.reference_bytes, study_.reference_loss});
  const double minutes = static_cast<double>(clock_.steady_ms() - search_began_ms_) / 60000;
  if (phase_ == Phase::searching && measured_here_ > 1 && minutes > kLeastRateMinutes) {
    progress.trials_per_minute = static_cast<double>(measured_here_) / minutes;
    const auto left = static_cast<double>(study_.spec.search.trials - told_);
    progress.eta_seconds = left / progress.trials_per_minute * 60;
  }
  return progress;
}

}  // namespace kvsweep::coordinator
