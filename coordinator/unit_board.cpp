#include "coordinator/unit_board.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvsweep::coordinator {

namespace {

constexpr char kJoint = '+';  // between the pieces of a unit's id

bool someone_else(const WorkerIds& live, const WorkerIds& avoid) {
  return std::any_of(live.begin(), live.end(),
                     [&](const std::string& id) { return !avoid.contains(id); });
}

int64_t count_of(const std::string& unit_id) {
  return std::count(unit_id.begin(), unit_id.end(), kJoint) + 1;
}

}  // namespace

std::string unit_id_of(const std::vector<std::string>& pieces) {
  return fmt::format("{}", fmt::join(pieces, std::string(1, kJoint)));
}

std::vector<std::string> pieces_of(const std::string& unit_id) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  while (true) {
    const size_t end = unit_id.find(kJoint, begin);
    pieces.push_back(unit_id.substr(begin, end - begin));
    if (end == std::string::npos) return pieces;
    begin = end + 1;
  }
}

bool UnitBoard::add(Piece piece) {
  const std::string id = piece.id;
  if (!pieces_.emplace(id, std::move(piece)).second) return false;
  enqueue(id, false);
  return true;
}

void UnitBoard::enqueue(const std::string& piece_id, bool first) {
  const int64_t place = first ? first_place_-- : last_place_++;
  where_[piece_id] = {.place = place};
  queue_[place] = piece_id;
  const std::string& company = pieces_.at(piece_id).company;
  if (!company.empty()) companies_[company][place] = piece_id;
}

// It waits no more. Does nothing to one that does not wait.
void UnitBoard::dequeue(const std::string& piece_id) {
  Entry& entry = where_.at(piece_id);
  if (!entry.place) return;
  queue_.erase(*entry.place);
  const auto company = companies_.find(pieces_.at(piece_id).company);
  if (company != companies_.end()) {
    company->second.erase(*entry.place);
    if (company->second.empty()) companies_.erase(company);
  }
  entry.place.reset();
}

bool UnitBoard::may_take(const Piece& piece, const std::string& worker_id,
                         const WorkerIds& live) const {
  return !piece.avoid.contains(worker_id) || !someone_else(live, piece.avoid);
}

std::vector<std::string> UnitBoard::gather(const Piece& first, const std::string& worker_id,
                                           const WorkerIds& live) const {
  std::vector<std::string> ids = {first.id};
  const auto company = companies_.find(first.company);
  if (company == companies_.end()) return ids;
  int64_t most = first.most;
  for (const auto& [place, id] : company->second) {
    const auto count = static_cast<int64_t>(ids.size());
    if (count >= most) break;
    const Piece& piece = pieces_.at(id);
    if (id == first.id || piece.most <= count || !may_take(piece, worker_id, live)) continue;
    ids.push_back(id);
    most = std::min(most, piece.most);
  }
  return ids;
}

const LentUnit* UnitBoard::lend(const std::string& unit_id,
                                const std::vector<std::string>& pieces) {
  LentUnit unit{.id = unit_id, .pieces = pieces};
  for (const std::string& id : pieces) {
    dequeue(id);
    where_.at(id).unit = unit_id;
    unit.attempt = std::max(unit.attempt, ++pieces_.at(id).attempts);
  }
  return &(lent_[unit_id] = std::move(unit));
}

const LentUnit* UnitBoard::take(const std::string& worker_id, const WorkerIds& live) {
  for (const auto& [place, id] : queue_) {
    const Piece& piece = pieces_.at(id);
    if (!may_take(piece, worker_id, live)) continue;
    const std::vector<std::string> ids = gather(piece, worker_id, live);
    return lend(unit_id_of(ids), ids);
  }
  return nullptr;
}

bool UnitBoard::adopt(const std::string& unit_id, int attempt, const std::string& worker_id) {
  std::vector<std::string> waiting;
  for (const std::string& id : pieces_of(unit_id)) {
    const auto it = pieces_.find(id);
    if (it == pieces_.end() || !where_.at(id).place) continue;
    if (it->second.avoid.contains(worker_id) || it->second.most < count_of(unit_id)) return false;
    waiting.push_back(id);
  }
  if (waiting.empty() || lent_.contains(unit_id)) return false;
  lend(unit_id, waiting);
  for (const std::string& id : waiting) {
    pieces_.at(id).attempts = std::max(pieces_.at(id).attempts, attempt);
  }
  lent_.at(unit_id).attempt = attempt;
  return true;
}

void UnitBoard::requeue(const std::string& unit_id) {
  const auto it = lent_.find(unit_id);
  if (it == lent_.end()) return;
  const std::vector<std::string> pieces = std::move(it->second.pieces);
  lent_.erase(it);
  for (auto id = pieces.rbegin(); id != pieces.rend(); ++id) enqueue(*id, true);
}

bool UnitBoard::charge(Piece& piece, ErrorCode failure_class, const std::string& worker_id,
                       const WorkerIds& live) {
  const RetryRule rule = retry_rule(failure_class, limits_);
  const int count = ++piece.failures[failure_class];
  // A lost or stopping worker says nothing about how well it would do next time.
  if (failure_class != ErrorCode::preempted && failure_class != ErrorCode::worker_lost) {
    piece.avoid.insert(worker_id);
  }
  const bool spent = rule.attempts > 0 && count >= rule.attempts;
  return !spent && !(rule.elsewhere_only && !someone_else(live, piece.avoid));
}

// Halves keep their order and stand at the head of the queue, so each is lent as one unit.
void UnitBoard::split(const LentUnit& unit, ErrorCode failure_class) {
  const bool lost = failure_class == ErrorCode::worker_lost;
  const bool spared = failure_class == ErrorCode::preempted ||
                      (lost && std::all_of(unit.pieces.begin(), unit.pieces.end(),
                                           [&](auto& id) { return pieces_.at(id).losses == 0; }));
  const int64_t half = (count_of(unit.id) + 1) / 2;
  for (const std::string& id : unit.pieces) {
    Piece& piece = pieces_.at(id);
    piece.losses += lost ? 1 : 0;
    if (!spared) piece.most = std::min(piece.most, half);
  }
}

std::vector<Piece> UnitBoard::failed(const std::string& unit_id, ErrorCode failure_class,
                                     const std::string& worker_id, const WorkerIds& live) {
  const auto it = lent_.find(unit_id);
  if (it == lent_.end()) return {};
  if (count_of(unit_id) == 1) return failed_alone(unit_id, failure_class, worker_id, live);
  split(it->second, failure_class);
  requeue(unit_id);
  return {};
}

std::vector<Piece> UnitBoard::failed_alone(const std::string& piece_id, ErrorCode failure_class,
                                           const std::string& worker_id, const WorkerIds& live) {
  const auto it = pieces_.find(piece_id);
  if (it == pieces_.end()) return {};
  if (!charge(it->second, failure_class, worker_id, live)) {
    std::vector<Piece> spent = {it->second};
    remove(piece_id);
    return spent;
  }
  dequeue(piece_id);
  leave_unit(piece_id);
  enqueue(piece_id, true);
  return {};
}

// A unit without pieces is no longer lent; its worker's result is then nobody's.
void UnitBoard::leave_unit(const std::string& piece_id) {
  const auto it = lent_.find(where_.at(piece_id).unit);
  if (it == lent_.end()) return;
  std::erase(it->second.pieces, piece_id);
  if (it->second.pieces.empty()) lent_.erase(it);
}

void UnitBoard::remove(const std::string& piece_id) {
  if (!pieces_.contains(piece_id)) return;
  dequeue(piece_id);
  leave_unit(piece_id);
  where_.erase(piece_id);
  pieces_.erase(piece_id);
}

void UnitBoard::remove_if(const std::function<bool(const Piece&)>& condition) {
  std::vector<std::string> ids;
  for (const auto& [id, piece] : pieces_) {
    if (condition(piece)) ids.push_back(id);
  }
  for (const std::string& id : ids) remove(id);
}

void UnitBoard::revise_waiting(const std::function<bool(Piece&)>& change) {
  std::map<std::string, std::map<int64_t, std::string>> companies;
  std::vector<std::string> gone;
  for (const auto& [place, id] : queue_) {
    Piece& piece = pieces_.at(id);
    if (!change(piece)) {
      gone.push_back(id);
    } else if (!piece.company.empty()) {
      companies[piece.company][place] = id;
    }
  }
  companies_ = std::move(companies);
  for (const std::string& id : gone) remove(id);
}

const Piece* UnitBoard::find(const std::string& piece_id) const {
  const auto it = pieces_.find(piece_id);
  return it == pieces_.end() ? nullptr : &it->second;
}

const LentUnit* UnitBoard::lent(const std::string& unit_id) const {
  const auto it = lent_.find(unit_id);
  return it == lent_.end() ? nullptr : &it->second;
}

}  // namespace kvsweep::coordinator
