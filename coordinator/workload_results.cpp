// Workload: what results and failures do.
#include <fmt/format.h>

#include <algorithm>

#include "coordinator/result_check.hpp"
#include "coordinator/workload.hpp"

namespace kvsweep::coordinator {

// Every running evaluation that waits for these examples in the same scope fails with the piece:
// two evaluations of one scope share it.
void Workload::fail_evaluations(const Piece& piece, const Error& error) {
  std::vector<int> failing;
  for (auto& [id, evaluation] : evaluations_) {
    const bool waits =
        std::any_of(piece.examples.begin(), piece.examples.end(), [&](int64_t example) {
          return example < evaluation.request().examples && !evaluation.has(example);
        });
    const bool running = evaluation.fate() == Evaluation::Fate::running;
    if (!running || !waits || !same_scope(id, piece.evaluation)) continue;
    evaluation.fail(error);
    failing.push_back(id);
  }
  for (const int id : failing) {
    ended_.push_back(id);
    drop_pieces_of(id);
  }
}

Status Workload::failed(const std::string& unit_id, const wire::UnitFailure& failure,
                        const Reporter& reporter) {
  if (!reporter.leased) return {};
  return give_up(board_.failed(unit_id, failure.code, reporter.worker_id, reporter.live), failure,
                 reporter.worker_id);
}

// These were tried for the last time.
Status Workload::give_up(const std::vector<Piece>& spent, const wire::UnitFailure& failure,
                         const std::string& worker_id) {
  const Error error{failure.code, failure.message};
  for (const Piece& piece : spent) {
    if (piece.kind == wire::UnitKind::describe) {
      tasks_.at(piece.task).failure = error;
    } else {
      fail_evaluations(piece, error);
    }
    const std::string text = fmt::format("{}: {}", to_string(failure.code), failure.message);
    KVSWEEP_TRY(record_piece(piece, "failed", worker_id, text, 0));
  }
  return {};
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
  const Piece* piece = board_.find(result.unit_id);
  if (piece == nullptr || piece->kind != wire::UnitKind::describe) {
    return Verdict{Judgement::refused, "the task was described already"};
  }
  if (Status status = check_description(*result.description); !status.ok()) {
    return refuse(result, status.error(), reporter);
  }
  Task& task = tasks_.at(piece->task);
  task.data =
      std::make_shared<TaskData>(TaskData{task.protocol, result.description->example_hashes});
  for (RunMode mode : modes_of(task.protocol)) {
    KVSWEEP_TRY(store_.put_task(task.protocol, mode, result.description->examples));
  }
  ++described_;
  KVSWEEP_TRY(record_piece(*piece, "done", reporter.worker_id, "", result.wall_ms));
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
  if (result.model_hash != model_.model_hash || result.base != model_.base ||
      result.numerics_class != model_.numerics_class) {
    return refuse(result,
                  bad_input(fmt::format("the result is of another model, baseline type or numerics "
                                        "class ({}) than what is being measured ({})",
                                        result.numerics_class, model_.numerics_class)),
                  reporter);
  }
  const std::optional<TaskMatch> match = match_task(result.protocol_hash);
  if (!match) {
    return refuse(result, bad_input("the result is of a task that is not being measured"),
                  reporter);
  }
  if (!match->task->data) return Verdict{Judgement::held, ""};
  std::map<std::string, Error> bad;  // by map
  for (const wire::MapMeasurements& map : result.maps) {
    if (const auto error = objection(map, *match)) bad.emplace(map.map_id, *error);
  }
  for (const wire::MapMeasurements& map : result.maps) {
    if (bad.contains(map.map_id)) continue;
    KVSWEEP_TRY(record(map, result, reporter.worker_id));
  }
  KVSWEEP_TRY(finish_pieces(result, bad, reporter));
  if (bad.empty()) return Verdict{};
  return Verdict{Judgement::refused, bad.begin()->second.message};
}

std::optional<Error> Workload::objection(const wire::MapMeasurements& map,
                                         const TaskMatch& match) const {
  if (Status s = check_measurements({map}, *match.task->data, match.mode); !s.ok()) {
    return s.error();
  }
  if (map_is_known(map.map_id)) return std::nullopt;
  return bad_input("the result is of a map that nobody asked for: " + map.map_id);
}

std::optional<Workload::TaskMatch> Workload::match_task(const std::string& hash) const {
  for (const auto& [key, task] : tasks_) {
    for (RunMode mode : modes_of(task.protocol)) {
      if (protocol_hash(task.protocol, mode) == hash) return TaskMatch{&task, mode};
    }
  }
  return std::nullopt;
}

Status Workload::record(const wire::MapMeasurements& map, const wire::UnitResult& result,
                        const std::string& worker_id) {
  const store::MeasurementScope scope{.model_hash = result.model_hash,
                                      .map_id = map.map_id,
                                      .protocol_hash = result.protocol_hash,
                                      .numerics_class = result.numerics_class,
                                      .base = result.base};
  auto stored = store_.put_measurements(scope, map.measurements, worker_id, result.batch_invariant,
                                        clock_.utc_ms());
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
  return {};
}

bool Workload::is_lent(const std::string& unit_id, const std::string& piece_id) const {
  const LentUnit* unit = board_.lent(unit_id);
  return unit != nullptr &&
         std::find(unit->pieces.begin(), unit->pieces.end(), piece_id) != unit->pieces.end();
}

// What each piece of the unit has come to, whoever has it now; only what the reporter holds can be
// charged. `bad`: the maps that were refused, and why.
Status Workload::finish_pieces(const wire::UnitResult& result,
                               const std::map<std::string, Error>& bad, const Reporter& reporter) {
  const std::vector<std::string> ids = pieces_of(result.unit_id);
  int64_t left_out = 0;
  int64_t done = 0;
  for (const std::string& id : ids) {
    if (board_.find(id) == nullptr) continue;
    const Piece piece = *board_.find(id);
    if (piece.kind != wire::UnitKind::measure) continue;
    const Evaluation& evaluation = evaluations_.at(piece.evaluation);
    const auto left = std::count_if(piece.examples.begin(), piece.examples.end(),
                                    [&](int64_t example) { return !evaluation.has(example); });
    const auto refused = bad.find(evaluation.scope().map_id);
    if (left == 0) {
      const double share = result.wall_ms / static_cast<double>(ids.size());
      KVSWEEP_TRY(record_piece(piece, "done", reporter.worker_id, "", share));
      board_.remove(id);
      ++done;
    } else if (!reporter.leased || !is_lent(result.unit_id, id)) {
      continue;
    } else if (refused != bad.end()) {
      const wire::UnitFailure failure{refused->second.code, refused->second.message};
      KVSWEEP_TRY(give_up(board_.failed_alone(id, failure.code, reporter.worker_id, reporter.live),
                          failure, reporter.worker_id));
    } else {
      left_out += left;
    }
  }
  const bool as_lent = reporter.leased && done == static_cast<int64_t>(ids.size());
  untrimmed_ = untrimmed_ || !as_lent;
  if (as_lent) note_speed(result);
  if (left_out == 0) return {};
  return failed(result.unit_id,
                {ErrorCode::internal,
                 fmt::format("the worker left out {} of the unit's measurements", left_out)},
                reporter);
}

void Workload::note_speed(const wire::UnitResult& result) {
  size_t count = 0;
  for (const wire::MapMeasurements& map : result.maps) count += map.measurements.size();
  if (result.wall_ms <= 0 || count == 0) return;
  const double sample = result.wall_ms / static_cast<double>(count);
  ms_per_example_ = ms_per_example_ <= 0 ? sample : 0.7 * ms_per_example_ + 0.3 * sample;
}

// A row per piece: what it cost alone cannot be told when it was lent with others, so each has an
// equal share of the time, and the sum over the rows is what the workers spent.
Status Workload::record_piece(const Piece& piece, const std::string& state,
                              const std::string& worker_id, const std::string& failure,
                              double wall_ms) {
  const std::string kind = piece.kind == wire::UnitKind::describe ? "describe" : "measure";
  return store_.put_unit(piece.id, model_.study_id, kind, state, piece.attempts, worker_id, failure,
                         wall_ms, clock_.utc_ms());
}

}  // namespace kvsweep::coordinator
