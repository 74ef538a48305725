// LeaseTable: which unit is lent to which worker until when. Pure logic over an injected clock.
//
// A lease is (unit, attempt, worker, expiry on our clock). It lives `lease_ms` after the last
// Progress that named it; and whatever Progress says, it ends when its counters have not moved for
// `stall_ms`: heartbeats come from another thread than the computation, and a thread that hangs
// must not hold a unit for ever.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"

namespace kvsweep::coordinator {

struct LeaseEntry {
  std::string lease_id;
  std::string unit_id;
  std::string worker_id;
  int attempt = 1;
  int64_t expires_ms = 0;  // on Clock::steady_ms
  int64_t moved_ms = 0;    // when the counters below last changed
  int64_t done = 0;        // examples
  int64_t total = 0;
  int64_t tokens = 0;
};

struct LeaseTimes {
  int64_t lease_ms = 30000;
  int64_t stall_ms = 600000;
};

struct ExpiredLease {
  LeaseEntry lease;
  ErrorCode reason = ErrorCode::worker_lost;  // or timeout, when only the counters stood still
};

// The counters of one Progress entry.
struct LeaseCounters {
  int64_t done = 0;
  int64_t total = 0;
  int64_t tokens = 0;
};

// Not thread-safe. Invariants: at most one live lease per unit and one per worker.
class LeaseTable {
 public:
  LeaseTable(const Clock& clock, const LeaseTimes& times) : clock_(clock), times_(times) {}

  // The lease id is unit_id + "#" + attempt, so that a coordinator that was restarted recognises
  // what a worker still runs. Throws std::logic_error when unit or worker already has a live lease.
  const LeaseEntry& grant(const std::string& unit_id, const std::string& worker_id, int attempt);

  // False when there is no such live lease of this worker.
  bool renew(const std::string& lease_id, const std::string& worker_id,
             const LeaseCounters& counters);

  // Ends a lease; false when it was not live.
  bool close(const std::string& lease_id);

  // Removes and returns what has run out, in order of lease id.
  std::vector<ExpiredLease> expire();

  const LeaseEntry* find(const std::string& lease_id) const;  // nullptr when not live
  const LeaseEntry* of_unit(const std::string& unit_id) const;
  const LeaseEntry* of_worker(const std::string& worker_id) const;
  const std::map<std::string, LeaseEntry>& live() const { return live_; }

 private:
  void forget(const LeaseEntry& lease);

  const Clock& clock_;
  LeaseTimes times_;
  std::map<std::string, LeaseEntry> live_;        // by lease id
  std::map<std::string, std::string> by_unit_;    // unit id -> lease id
  std::map<std::string, std::string> by_worker_;  // worker id -> lease id
};

std::string lease_id_of(const std::string& unit_id, int attempt);

// The inverse; false when `lease_id` has another form.
bool parse_lease_id(const std::string& lease_id, std::string* unit_id, int* attempt);

}  // namespace kvsweep::coordinator
