#include "coordinator/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/hash.hpp"

namespace kvsweep::coordinator {

namespace {

// A lost worker costs at most this much work, and an idle one waits at most this long for a slice.
constexpr double kUnitTargetMs = 10000;
constexpr int64_t kUnitExamplesUnknown = 8;    // before anything was timed,
constexpr int64_t kUnitSequencesUnknown = 32;  // and of all maps of a unit together
constexpr int64_t kUnitExamplesMax = 256;

std::string task_key(const TaskProtocol& protocol) {
  return protocol_hash(protocol, RunMode::generate);
}

// The same work has the same id in every process, so that a restarted coordinator recognises the
// result of a unit that its predecessor lent out.
std::string measure_piece_id(const store::MeasurementScope& scope,
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
  const std::string id = "d-" + sha256_hex(model_.model_hash + key).substr(0, 24);
  board_.add({.id = id, .kind = wire::UnitKind::describe, .task = key});
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
  drop_pieces_of(id);
  evaluations_.erase(id);
}

std::vector<int> Workload::take_ended() {
  return std::exchange(ended_, {});
}

int64_t Workload::unit_size(int64_t maps) const {
  if (options_.examples_per_unit > 0) return options_.examples_per_unit;
  if (ms_per_example_ <= 0) {
    return std::clamp<int64_t>(kUnitSequencesUnknown / maps, 1, kUnitExamplesUnknown);
  }
  const double fitting = std::floor(kUnitTargetMs / ms_per_example_ / static_cast<double>(maps));
  return static_cast<int64_t>(std::clamp(fitting, 1.0, static_cast<double>(kUnitExamplesMax)));
}

// Only pieces of equal examples can be lent together, so the size stays as it was the first time,
// until it is wrong by more than a factor of two. There is something for every worker: those that
// find nothing would have the search asked for more candidates.
int64_t Workload::steady_unit_size(const Evaluation& evaluation) {
  const int64_t maps = evaluation.request().maps_per_unit;
  int64_t size = unit_size(maps);
  if (maps == 1 || options_.examples_per_unit > 0) return size;
  size = std::min(size, (evaluation.request().examples + workers_ - 1) / workers_);
  int64_t& kept = unit_sizes_[fmt::format("{}/{}", evaluation.scope().protocol_hash, maps)];
  if (kept == 0 || size > 2 * kept || 2 * size < kept) kept = size;
  return kept;
}

bool Workload::same_scope(int a, int b) const {
  const store::MeasurementScope& left = evaluations_.at(a).scope();
  const store::MeasurementScope& right = evaluations_.at(b).scope();
  return left.map_id == right.map_id && left.protocol_hash == right.protocol_hash;
}

// Queues pieces for what is missing and on nobody's list yet: another evaluation of the same scope
// may have some of the examples in its pieces, whose results count for both.
void Workload::cover(int id) {
  std::vector<int64_t> missing = evaluations_.at(id).missing();
  for (const auto& [piece_id, piece] : board_.all()) {
    if (piece.kind != wire::UnitKind::measure || !same_scope(piece.evaluation, id)) continue;
    std::erase_if(missing, [&](int64_t example) {
      return std::find(piece.examples.begin(), piece.examples.end(), example) !=
             piece.examples.end();
    });
  }
  for (Piece& piece : slices(id, missing)) board_.add(std::move(piece));
}

// Slices of nearly equal length: 20 examples at 8 per unit are 6 + 7 + 7, not 8 + 8 + 4. Where maps
// may be joined it is the whole range that is cut, so that all maps are cut at the same examples.
std::vector<Piece> Workload::slices(int id, const std::vector<int64_t>& missing) {
  const Evaluation& evaluation = evaluations_.at(id);
  const int64_t most = evaluation.request().maps_per_unit;
  std::vector<int64_t> range = missing;
  if (most > 1) {
    range.resize(evaluation.request().examples);
    std::iota(range.begin(), range.end(), 0);
  }
  const auto total = static_cast<int64_t>(range.size());
  const int64_t size = steady_unit_size(evaluation);
  const int64_t count = (total + size - 1) / size;
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    Piece piece{.evaluation = id, .most = most};
    std::set_intersection(range.begin() + total * i / count,
                          range.begin() + total * (i + 1) / count, missing.begin(), missing.end(),
                          std::back_inserter(piece.examples));
    if (piece.examples.empty()) continue;
    piece.id = measure_piece_id(evaluation.scope(), piece.examples);
    piece.company = company_of(evaluation, piece.examples);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// What the maps of one unit must have in common.
std::string Workload::company_of(const Evaluation& evaluation,
                                 const std::vector<int64_t>& examples) const {
  const EvaluationRequest& request = evaluation.request();
  if (request.maps_per_unit == 1) return "";
  return sha256_hex(fmt::format("{}/{}/{}", evaluation.scope().protocol_hash,
                                static_cast<const void*>(request.references.get()),
                                fmt::join(examples, ",")));
}

// What came late, or from an earlier process, may be a part of what waits.
void Workload::trim_waiting() {
  if (!std::exchange(untrimmed_, false)) return;
  board_.revise_waiting([&](Piece& piece) {
    if (piece.kind != wire::UnitKind::measure) return true;
    const Evaluation& evaluation = evaluations_.at(piece.evaluation);
    const auto gone = std::erase_if(piece.examples, [&](int64_t e) { return evaluation.has(e); });
    if (gone == 0) return true;
    piece.company = company_of(evaluation, piece.examples);
    return !piece.examples.empty();
  });
}

std::optional<Grant> Workload::take(const std::string& worker_id, const WorkerIds& live) {
  workers_ = std::max<int64_t>(1, static_cast<int64_t>(live.size()));
  trim_waiting();
  const LentUnit* unit = board_.take(worker_id, live);
  if (unit == nullptr) return std::nullopt;
  return Grant{.unit_id = unit->id, .attempt = unit->attempt, .unit = build(*unit)};
}

wire::Unit Workload::build(const LentUnit& unit) const {
  const Piece& piece = *board_.find(unit.pieces.front());
  if (piece.kind == wire::UnitKind::measure) return build_measure(unit);
  return {.unit_id = unit.id,
          .kind = wire::UnitKind::describe,
          .model_dir = model_.model_dir,
          .model_hash = model_.model_hash,
          .base = model_.base,
          .protocol = tasks_.at(piece.task).protocol};
}

wire::Unit Workload::build_measure(const LentUnit& unit) const {
  const Piece& first = *board_.find(unit.pieces.front());
  const EvaluationRequest& request = evaluations_.at(first.evaluation).request();
  wire::Unit work{.unit_id = unit.id,
                  .kind = wire::UnitKind::measure,
                  .model_dir = model_.model_dir,
                  .model_hash = model_.model_hash,
                  .base = model_.base,
                  .protocol = request.task->protocol,
                  .mode = request.mode,
                  .examples = first.examples};
  for (const std::string& id : unit.pieces) {
    work.maps.push_back(evaluations_.at(board_.find(id)->evaluation).request().map);
  }
  for (const int64_t example : work.examples) {
    if (request.references) work.references[example] = request.references->at(example);
  }
  return work;
}

void Workload::drop_pieces_of(int id) {
  board_.remove_if([&](const Piece& piece) {
    return piece.kind == wire::UnitKind::measure && piece.evaluation == id;
  });
  // Others may have counted on them.
  for (const auto& [other, evaluation] : evaluations_) {
    const bool running = evaluation.fate() == Evaluation::Fate::running;
    if (other != id && running && same_scope(other, id)) cover(other);
  }
}

}  // namespace kvsweep::coordinator
