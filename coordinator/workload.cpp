#include "coordinator/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coordinator/result_check.hpp"
#include "core/hash.hpp"

namespace kvsweep::coordinator {

namespace {

// A lost worker costs at most this much work, and an idle one waits at most this long for a slice.
constexpr double kUnitTargetMs = 10000;
constexpr int64_t kUnitExamplesUnknown = 8;  // before anything was timed
constexpr int64_t kUnitExamplesMax = 256;

std::string task_key(const TaskProtocol& protocol) {
  return protocol_hash(protocol, RunMode::generate);
}

// The same work has the same id in every process, so that a restarted coordinator recognises the
// result of a unit that its predecessor lent out.
std::string measure_unit_id(const store::MeasurementScope& scope,
                            const std::vector<int64_t>& examples) {
  const std::string work =
      fmt::format("{}/{}/{}/{}/{}/{}", scope.model_hash, scope.map_id, scope.protocol_hash,
                  scope.numerics_class, to_string(scope.base), fmt::join(examples, ","));
  return "m-" + sha256_hex(work).substr(0, 24);
}

}  // namespace

Workload::Workload(ModelContext model, store::Store& store, const Clock& clock,
                   const WorkloadOptions& options)
    : model_(std::move(model)),
      store_(store),
      clock_(clock),
      options_(options),
      board_(options.retry) {}

void Workload::describe(const TaskProtocol& protocol) {
  const std::string key = task_key(protocol);
  if (!tasks_.try_emplace(key, Task{.protocol = protocol}).second) return;
  // Examples may depend on the model's tokenizer, so another model's description is another unit.
  const std::string unit_id = "d-" + sha256_hex(model_.model_hash + key).substr(0, 24);
  board_.add({.unit_id = unit_id, .kind = wire::UnitKind::describe, .task = key});
}

std::shared_ptr<const TaskData> Workload::task(const TaskProtocol& protocol) const {
  const auto it = tasks_.find(task_key(protocol));
  return it == tasks_.end() ? nullptr : it->second.data;
}

std::optional<Error> Workload::task_failure(const TaskProtocol& protocol) const {
  const auto it = tasks_.find(task_key(protocol));
  return it == tasks_.end() ? std::nullopt : it->second.failure;
}

Result<int> Workload::begin(EvaluationRequest request) {
  store::MeasurementScope scope{
      .model_hash = model_.model_hash,
      .map_id = map_id(request.map),
      .protocol_hash = protocol_hash(request.task->protocol, request.mode),
      .numerics_class = model_.numerics_class,
      .base = model_.base};
  KVSWEEP_TRY(store_.put_map(request.map));
  Evaluation evaluation(std::move(request), scope);
  const auto hashes = evaluation.example_hashes();
  KVSWEEP_ASSIGN(const auto stored, store_.measurements(scope, hashes));
  int64_t reused = 0;
  for (size_t example = 0; example < hashes.size(); ++example) {
    const auto it = stored.find(hashes[example]);
    if (it == stored.end()) continue;
    // Two examples of equal content share one measurement, which carries one of their indices.
    Measurement m = it->second;
    m.example = static_cast<int64_t>(example);
    reused += evaluation.add(m) ? 1 : 0;
  }
  evaluation.set_reused(reused);
  const int id = next_id_++;
  const auto it = evaluations_.emplace(id, std::move(evaluation)).first;
  if (it->second.fate() == Evaluation::Fate::complete) {
    ended_.push_back(id);
  } else {
    cover(id);
  }
  return id;
}

void Workload::forget(int id) {
  drop_units_of(id);
  evaluations_.erase(id);
}

std::vector<int> Workload::take_ended() {
  return std::exchange(ended_, {});
}

int64_t Workload::unit_size() const {
  if (options_.examples_per_unit > 0) return options_.examples_per_unit;
  if (ms_per_example_ <= 0) return kUnitExamplesUnknown;
  const double fitting = std::floor(kUnitTargetMs / ms_per_example_);
  return static_cast<int64_t>(std::clamp(fitting, 1.0, static_cast<double>(kUnitExamplesMax)));
}

bool Workload::same_scope(int a, int b) const {
  const store::MeasurementScope& left = evaluations_.at(a).scope();
  const store::MeasurementScope& right = evaluations_.at(b).scope();
  return left.map_id == right.map_id && left.protocol_hash == right.protocol_hash;
}

// Queues units for what is missing and on nobody's list yet: another evaluation of the same scope
// may have some of the examples in its units, whose results count for both.
void Workload::cover(int id) {
  std::vector<int64_t> missing = evaluations_.at(id).missing();
  for (const auto& [unit_id, unit] : board_.all()) {
    if (unit.kind != wire::UnitKind::measure || !same_scope(unit.evaluation, id)) continue;
    std::erase_if(missing, [&](int64_t example) {
      return std::find(unit.examples.begin(), unit.examples.end(), example) != unit.examples.end();
    });
  }
  for (BoardUnit& unit : slices(id, std::move(missing))) board_.add(std::move(unit));
}

// Slices of nearly equal length: 20 examples at 8 per unit are 6 + 7 + 7, not 8 + 8 + 4.
std::vector<BoardUnit> Workload::slices(int id, std::vector<int64_t> missing) const {
  const auto total = static_cast<int64_t>(missing.size());
  const int64_t count = (total + unit_size() - 1) / unit_size();
  std::vector<BoardUnit> units;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = total * i / count;
    const int64_t end = total * (i + 1) / count;
    BoardUnit unit{.evaluation = id};
    unit.examples.assign(missing.begin() + begin, missing.begin() + end);
    unit.unit_id = measure_unit_id(evaluations_.at(id).scope(), unit.examples);
    units.push_back(std::move(unit));
  }
  return units;
}

std::optional<Grant> Workload::take(const std::string& worker_id, const WorkerIds& live) {
  while (const BoardUnit* unit = board_.take(worker_id, live)) {
    Grant grant{.unit_id = unit->unit_id, .attempt = unit->attempts, .unit = build(*unit)};
    if (unit->kind == wire::UnitKind::describe || !grant.unit.examples.empty()) return grant;
    board_.remove(grant.unit_id);  // a late result has brought everything it asks for
  }
  return std::nullopt;
}

wire::Unit Workload::build(const BoardUnit& unit) const {
  if (unit.kind == wire::UnitKind::measure) return build_measure(unit);
  return {.unit_id = unit.unit_id,
          .kind = wire::UnitKind::describe,
          .model_dir = model_.model_dir,
          .model_hash = model_.model_hash,
          .base = model_.base,
          .protocol = tasks_.at(unit.task).protocol};
}

wire::Unit Workload::build_measure(const BoardUnit& unit) const {
  const Evaluation& evaluation = evaluations_.at(unit.evaluation);
  const EvaluationRequest& request = evaluation.request();
  wire::Unit work{.unit_id = unit.unit_id,
                  .kind = wire::UnitKind::measure,
                  .model_dir = model_.model_dir,
                  .model_hash = model_.model_hash,
                  .base = model_.base,
                  .protocol = request.task->protocol,
                  .mode = request.mode,
                  .maps = {request.map}};
  for (int64_t example : unit.examples) {
    if (evaluation.has(example)) continue;
    work.examples.push_back(example);
    if (request.references) work.references[example] = request.references->at(example);
  }
  return work;
}

void Workload::drop_units_of(int id) {
  board_.remove_if([&](const BoardUnit& unit) {
    return unit.kind == wire::UnitKind::measure && unit.evaluation == id;
  });
  // Others may have counted on them.
  for (const auto& [other, evaluation] : evaluations_) {
    const bool running = evaluation.fate() == Evaluation::Fate::running;
    if (other != id && running && same_scope(other, id)) cover(other);
  }
}

// Every running evaluation that waits for these examples in the same scope fails with the unit:
// two evaluations of one scope share a unit.
void Workload::fail_evaluations(const BoardUnit& unit, const Error& error) {
  std::vector<int> failing;
  for (auto& [id, evaluation] : evaluations_) {
    const bool waits =
        std::any_of(unit.examples.begin(), unit.examples.end(), [&](int64_t example) {
          return example < evaluation.request().examples && !evaluation.has(example);
        });
    const bool running = evaluation.fate() == Evaluation::Fate::running;
    if (!running || !waits || !same_scope(id, unit.evaluation)) continue;
    evaluation.fail(error);
    failing.push_back(id);
  }
  for (const int id : failing) {
    ended_.push_back(id);
    drop_units_of(id);
  }
}

Status Workload::failed(const std::string& unit_id, const wire::UnitFailure& failure,
                        const Reporter& reporter) {
  const BoardUnit* known = board_.find(unit_id);
  if (known == nullptr || !reporter.leased) return {};
  const BoardUnit unit = *known;
  if (board_.failed(unit_id, failure.code, reporter.worker_id, reporter.live)) return {};
  const Error error{failure.code, failure.message};
  if (unit.kind == wire::UnitKind::describe) {
    tasks_.at(unit.task).failure = error;
  } else {
    fail_evaluations(unit, error);
  }
  const std::string text = fmt::format("{}: {}", to_string(failure.code), failure.message);
  return record_unit(unit, "failed", reporter.worker_id, text, 0);
}

Result<Verdict> Workload::accept(const wire::UnitResult& result, const Reporter& reporter) {
  return result.description ? accept_description(result, reporter)
                            : accept_measurements(result, reporter);
}

Result<Verdict> Workload::refuse(const wire::UnitResult& result, const Error& error,
                                 const Reporter& reporter) {
  KVSWEEP_TRY(failed(result.unit_id, {error.code, error.message}, reporter));
  return Verdict{Judgement::refused, error.message};
}

Result<Verdict> Workload::accept_description(const wire::UnitResult& result,
                                             const Reporter& reporter) {
  const BoardUnit* unit = board_.find(result.unit_id);
  if (unit == nullptr || unit->kind != wire::UnitKind::describe) {
    return Verdict{Judgement::refused, "the task was described already"};
  }
  if (Status status = check_description(*result.description); !status.ok()) {
    return refuse(result, status.error(), reporter);
  }
  Task& task = tasks_.at(unit->task);
  task.data =
      std::make_shared<TaskData>(TaskData{task.protocol, result.description->example_hashes});
  for (RunMode mode : modes_of(task.protocol)) {
    KVSWEEP_TRY(store_.put_task(task.protocol, mode, result.description->examples));
  }
  ++described_;
  KVSWEEP_TRY(record_unit(*unit, "done", reporter.worker_id, "", result.wall_ms));
  board_.remove(result.unit_id);
  return Verdict{};
}

bool Workload::map_is_known(const std::string& id) const {
  const bool running =
      std::any_of(evaluations_.begin(), evaluations_.end(),
                  [&](const auto& entry) { return entry.second.scope().map_id == id; });
  return running || (id.size() == 64 && store_.map_by_id(id).ok());
}

Result<Verdict> Workload::accept_measurements(const wire::UnitResult& result,
                                              const Reporter& reporter) {
  const store::MeasurementScope scope{.model_hash = result.model_hash,
                                      .protocol_hash = result.protocol_hash,
                                      .numerics_class = result.numerics_class,
                                      .base = result.base};
  if (scope.model_hash != model_.model_hash || scope.base != model_.base ||
      scope.numerics_class != model_.numerics_class) {
    return refuse(result,
                  bad_input(fmt::format("the result is of another model, baseline type or numerics "
                                        "class ({}) than what is being measured ({})",
                                        scope.numerics_class, model_.numerics_class)),
                  reporter);
  }
  const std::optional<TaskMatch> match = match_task(result.protocol_hash);
  if (!match) {
    return refuse(result, bad_input("the result is of a task that is not being measured"),
                  reporter);
  }
  if (!match->task->data) return Verdict{Judgement::held, ""};
  if (Status s = check_measurements(result.maps, *match->task->data, match->mode); !s.ok()) {
    return refuse(result, s.error(), reporter);
  }
  for (const wire::MapMeasurements& map : result.maps) {
    if (map_is_known(map.map_id)) continue;
    return refuse(result, bad_input("the result is of a map that nobody asked for: " + map.map_id),
                  reporter);
  }
  KVSWEEP_TRY(record(result, scope, reporter.worker_id));
  KVSWEEP_TRY(finish_unit(result, reporter));
  return Verdict{};
}

std::optional<Workload::TaskMatch> Workload::match_task(const std::string& hash) const {
  for (const auto& [key, task] : tasks_) {
    for (RunMode mode : modes_of(task.protocol)) {
      if (protocol_hash(task.protocol, mode) == hash) return TaskMatch{&task, mode};
    }
  }
  return std::nullopt;
}

Status Workload::record(const wire::UnitResult& result, const store::MeasurementScope& scope,
                        const std::string& worker_id) {
  for (const wire::MapMeasurements& map : result.maps) {
    store::MeasurementScope of_map = scope;
    of_map.map_id = map.map_id;
    auto stored = store_.put_measurements(of_map, map.measurements, worker_id,
                                          result.batch_invariant, clock_.utc_ms());
    KVSWEEP_TRY(stored);
    for (auto& [id, evaluation] : evaluations_) {
      if (evaluation.scope().map_id != map.map_id ||
          evaluation.scope().protocol_hash != scope.protocol_hash ||
          evaluation.fate() != Evaluation::Fate::running) {
        continue;
      }
      for (const Measurement& m : map.measurements) evaluation.add(m);
      if (evaluation.fate() == Evaluation::Fate::complete) ended_.push_back(id);
    }
  }
  return {};
}

Status Workload::finish_unit(const wire::UnitResult& result, const Reporter& reporter) {
  const BoardUnit* known = board_.find(result.unit_id);
  if (known == nullptr) return {};
  const BoardUnit unit = *known;
  const Evaluation& evaluation = evaluations_.at(unit.evaluation);
  const auto left = std::count_if(unit.examples.begin(), unit.examples.end(),
                                  [&](int64_t example) { return !evaluation.has(example); });
  if (left > 0) {
    return failed(unit.unit_id,
                  {ErrorCode::internal, fmt::format("the worker left out {} of {} examples", left,
                                                    unit.examples.size())},
                  reporter);
  }
  note_speed(unit, result.wall_ms);
  KVSWEEP_TRY(record_unit(unit, "done", reporter.worker_id, "", result.wall_ms));
  board_.remove(unit.unit_id);
  return {};
}

void Workload::note_speed(const BoardUnit& unit, double wall_ms) {
  if (wall_ms <= 0 || unit.examples.empty()) return;
  const double sample = wall_ms / static_cast<double>(unit.examples.size());
  ms_per_example_ = ms_per_example_ <= 0 ? sample : 0.7 * ms_per_example_ + 0.3 * sample;
}

Status Workload::record_unit(const BoardUnit& unit, const std::string& state,
                             const std::string& worker_id, const std::string& failure,
                             double wall_ms) {
  const std::string kind = unit.kind == wire::UnitKind::describe ? "describe" : "measure";
  return store_.put_unit(unit.unit_id, model_.study_id, kind, state, unit.attempts, worker_id,
                         failure, wall_ms, clock_.utc_ms());
}

}  // namespace kvsweep::coordinator
