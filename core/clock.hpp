// Time as an injected value, so that leases and heartbeats are tested without sleeping.
#pragma once

#include <cstdint>
#include <string>

namespace kvsweep {

// Milliseconds. `utc_ms` is wall time for records; `steady_ms` never goes back and is what
// deadlines are computed with. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t utc_ms() const = 0;
  virtual int64_t steady_ms() const = 0;
};

class SystemClock final : public Clock {
 public:
  int64_t utc_ms() const override;
  int64_t steady_ms() const override;
};

// Both clocks move only by `advance`. For tests; not thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t utc_ms = 0) : utc_ms_(utc_ms) {}
  int64_t utc_ms() const override { return utc_ms_ + elapsed_ms_; }
  int64_t steady_ms() const override { return elapsed_ms_; }
  void advance(int64_t ms) { elapsed_ms_ += ms; }

 private:
  int64_t utc_ms_;
  int64_t elapsed_ms_ = 0;
};

// "2026-11-29T20:23:51.042Z"
std::string format_utc(int64_t utc_ms);

}  // namespace kvsweep
