// ComputeThread: runs units on a thread of its own, so that heartbeats go on while a model
// computes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/wire/messages.hpp"
#include "worker/service/unit_runner.hpp"

namespace kvsweep::service {

// All methods are for one other thread, the I/O thread.
class ComputeThread {
 public:
  // `wake_fd` (an eventfd) is written whenever a result waits. The runner must outlive this.
  ComputeThread(UnitRunner& runner, int wake_fd);
  // Cancels and joins.
  ~ComputeThread();
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  void start(wire::Lease lease);  // not while busy
  bool busy() const { return !lease_id_.empty(); }
  const std::string& lease_id() const { return lease_id_; }
  wire::LeaseProgress progress() const;
  // The running unit leaves soon.
  void cancel() { cancel_ = true; }
  // The result of the unit that was started, once; then no longer busy.
  std::optional<wire::UnitResult> take_result();

 private:
  void loop();
  wire::UnitResult run(const wire::Lease& lease);

  UnitRunner& runner_;
  const int wake_fd_;
  std::string lease_id_;  // of the I/O thread
  UnitCounters counters_;
  std::atomic<bool> cancel_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<wire::Lease> next_;
  std::optional<wire::UnitResult> result_;
  bool leaving_ = false;
  std::thread thread_;
};

// A result whose figures are not finite cannot travel (the other side drops the message), and says
// that the computation went wrong: it becomes a failure of class `numerics` that names the example.
void refuse_non_finite(wire::UnitResult& result);

}  // namespace kvsweep::service
