#include "coordinator/unit_board.hpp"

#include <algorithm>

namespace kvsweep::coordinator {

namespace {

bool someone_else(const WorkerIds& live, const WorkerIds& avoid) {
  return std::any_of(live.begin(), live.end(),
                     [&](const std::string& id) { return !avoid.contains(id); });
}

}  // namespace

bool UnitBoard::add(BoardUnit unit) {
  const std::string id = unit.unit_id;
  if (!units_.emplace(id, std::move(unit)).second) return false;
  queue_.push_back(id);
  return true;
}

const BoardUnit* UnitBoard::taken(std::deque<std::string>::iterator position) {
  BoardUnit& unit = units_.at(*position);
  queue_.erase(position);
  ++unit.attempts;
  return &unit;
}

const BoardUnit* UnitBoard::take(const std::string& worker_id, const WorkerIds& live) {
  for (auto it = queue_.begin(); it != queue_.end(); ++it) {
    const BoardUnit& unit = units_.at(*it);
    if (unit.avoid.contains(worker_id) && someone_else(live, unit.avoid)) continue;
    return taken(it);
  }
  return nullptr;
}

const BoardUnit* UnitBoard::adopt(const std::string& unit_id, int attempt,
                                  const std::string& worker_id) {
  const auto it = std::find(queue_.begin(), queue_.end(), unit_id);
  if (it == queue_.end() || units_.at(unit_id).avoid.contains(worker_id)) return nullptr;
  const BoardUnit* unit = taken(it);
  BoardUnit& mine = units_.at(unit->unit_id);
  mine.attempts = std::max(mine.attempts, attempt);
  return unit;
}

void UnitBoard::requeue(const std::string& unit_id) {
  if (!units_.contains(unit_id)) return;
  if (std::find(queue_.begin(), queue_.end(), unit_id) != queue_.end()) return;
  queue_.push_front(unit_id);
}

bool UnitBoard::failed(const std::string& unit_id, ErrorCode failure_class,
                       const std::string& worker_id, const WorkerIds& live) {
  const auto it = units_.find(unit_id);
  if (it == units_.end()) return false;
  BoardUnit& unit = it->second;
  const RetryRule rule = retry_rule(failure_class, limits_);
  const int count = ++unit.failures[failure_class];
  // A lost or stopping worker says nothing about how well it would do next time.
  if (failure_class != ErrorCode::preempted && failure_class != ErrorCode::worker_lost) {
    unit.avoid.insert(worker_id);
  }
  const bool spent = rule.attempts > 0 && count >= rule.attempts;
  if (spent || (rule.elsewhere_only && !someone_else(live, unit.avoid))) {
    remove(unit_id);
    return false;
  }
  requeue(unit_id);
  return true;
}

void UnitBoard::remove(const std::string& unit_id) {
  units_.erase(unit_id);
  const auto it = std::find(queue_.begin(), queue_.end(), unit_id);
  if (it != queue_.end()) queue_.erase(it);
}

void UnitBoard::remove_if(const std::function<bool(const BoardUnit&)>& condition) {
  for (auto it = queue_.begin(); it != queue_.end();) {
    it = condition(units_.at(*it)) ? queue_.erase(it) : it + 1;
  }
  std::erase_if(units_, [&](const auto& entry) { return condition(entry.second); });
}

const BoardUnit* UnitBoard::find(const std::string& unit_id) const {
  const auto it = units_.find(unit_id);
  return it == units_.end() ? nullptr : &it->second;
}

}  // namespace kvsweep::coordinator
