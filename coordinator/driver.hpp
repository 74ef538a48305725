// Driver: what a run is for. The dispatcher moves messages, leases and results; a driver decides
// which evaluations to begin and what to make of their outcome (a study, or one `evaluate`).
#pragma once

#include <optional>
#include <string>

#include "coordinator/coordinator.hpp"
#include "coordinator/workload.hpp"
#include "core/result.hpp"
#include "core/wire/messages.hpp"

namespace kvsweep::coordinator {

// All calls that return Status run inside a store transaction; an error ends the run.
class Driver {
 public:
  virtual ~Driver() = default;

  virtual Workload& workload() = 0;

  // A sentence when this worker cannot serve the run.
  virtual std::optional<std::string> refuses(const wire::Hello& worker) const = 0;
  // A worker was admitted; the first one fixes the numerics class.
  virtual Status admitted(const wire::Hello& worker) = 0;

  // Looks at what ended and begins what follows from that.
  virtual Status step() = 0;
  // A worker is idle and nothing waits: begin more if there is more. True when something began.
  virtual Result<bool> more() = 0;
  virtual bool finished() const = 0;

  // The run ends before its end: record it so that it can be resumed.
  virtual Status interrupted() = 0;
  // The run cannot go on, for `reason`.
  virtual Status fail(const std::string& reason) = 0;

  // Fills everything but the workers and the examples of running units.
  virtual StudyProgress progress() const = 0;
  // Grows when there is news that a watcher should see at once (a trial ended).
  virtual int64_t news() const = 0;
};

}  // namespace kvsweep::coordinator
