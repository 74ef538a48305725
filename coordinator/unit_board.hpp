// UnitBoard: the work units of a run, which of them wait, and what becomes of one that fails. Pure
// logic: it knows neither clock, sockets nor database.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/retry.hpp"
#include "core/result.hpp"
#include "core/wire/messages.hpp"

namespace kvsweep::coordinator {

using WorkerIds = std::set<std::string>;

struct BoardUnit {
  std::string unit_id;
  wire::UnitKind kind = wire::UnitKind::measure;
  int evaluation = -1;            // measure: Workload's evaluation
  std::string task;               // describe: Workload's task
  std::vector<int64_t> examples;  // measure: indices in the split
  int attempts = 0;               // leases so far
  std::map<ErrorCode, int> failures;
  WorkerIds avoid;  // workers that have failed on it
};

// Not thread-safe.
class UnitBoard {
 public:
  explicit UnitBoard(const RetryLimits& limits) : limits_(limits) {}

  // False when a unit of this id is already here.
  bool add(BoardUnit unit);

  // The first waiting unit that this worker has not failed on; when every live worker has failed
  // on one, it goes to any. It counts as taken (attempts + 1) until `requeue`, `failed` or
  // `remove`. nullptr when there is nothing for this worker.
  const BoardUnit* take(const std::string& worker_id, const WorkerIds& live);

  // Takes exactly this unit if it waits and this worker has not failed on it (the worker runs it
  // already, under a lease that expired or that another coordinator process granted).
  const BoardUnit* adopt(const std::string& unit_id, int attempt, const std::string& worker_id);

  // Back to the head of the queue without charge: released, or never reached its worker.
  void requeue(const std::string& unit_id);

  // Charges a failure of a taken unit. True: it waits again; false: that was the last attempt, and
  // it is gone. Unknown units are gone already: false.
  bool failed(const std::string& unit_id, ErrorCode failure_class, const std::string& worker_id,
              const WorkerIds& live);

  void remove(const std::string& unit_id);
  // Removes every unit, waiting or taken, for which `condition` holds.
  void remove_if(const std::function<bool(const BoardUnit&)>& condition);

  const BoardUnit* find(const std::string& unit_id) const;
  const std::map<std::string, BoardUnit>& all() const { return units_; }  // waiting or taken
  size_t waiting() const { return queue_.size(); }
  size_t size() const { return units_.size(); }

 private:
  const BoardUnit* taken(std::deque<std::string>::iterator position);

  RetryLimits limits_;
  std::map<std::string, BoardUnit> units_;
  std::deque<std::string> queue_;  // of unit ids
};

}  // namespace kvsweep::coordinator
