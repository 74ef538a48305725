// UnitRunner: the compute side of a worker, seen from the service: one unit in, one result out.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/wire/messages.hpp"

namespace kvsweep::service {

// Written by the compute thread while it works, read by the I/O thread for heartbeats.
struct UnitCounters {
  std::atomic<int64_t> done{0};    // examples finished
  std::atomic<int64_t> total{0};   // examples of the unit, over all its maps
  std::atomic<int64_t> tokens{0};  // processed

  void reset() {
    done = 0;
    total = 0;
    tokens = 0;
  }
};

class UnitRunner {
 public:
  virtual ~UnitRunner() = default;

  // Runs on the compute thread, one unit at a time. Fills everything of the result but lease_id,
  // unit_id and wall_ms. Leaves soon with a failure of class `preempted` once `cancel` is true.
  // What it throws becomes a failure: std::bad_alloc `oom`, everything else `internal`.
  virtual wire::UnitResult run(const wire::Unit& unit, UnitCounters& counters,
                               const std::atomic<bool>& cancel) = 0;
};

}  // namespace kvsweep::service
