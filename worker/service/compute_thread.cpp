#include "worker/service/compute_thread.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <new>

#include "core/text.hpp"

namespace kvsweep::service {

namespace {

constexpr size_t kLongestMessage = 4000;  // bytes

wire::UnitResult failure(ErrorCode code, const std::string& message) {
  wire::UnitResult result;
  result.failure = wire::UnitFailure{code, message};
  return result;
}

bool finite(const std::optional<double>& value) {
  return !value || std::isfinite(*value);
}

bool finite(const Measurement& m) {
  return finite(m.exact_match) && finite(m.strict_match) && finite(m.token_agreement) &&
         finite(m.kl) && finite(m.nll) && std::isfinite(m.timings.prefill_ms) &&
         std::isfinite(m.timings.decode_ms);
}

}  // namespace

void refuse_non_finite(wire::UnitResult& result) {
  for (const wire::MapMeasurements& map : result.maps) {
    for (const Measurement& m : map.measurements) {
      if (finite(m)) continue;
      result.failure = wire::UnitFailure{
          ErrorCode::numerics, fmt::format("a figure of example {} is not a finite number under "
                                           "map {}",
                                           m.example, map.map_id.substr(0, 12))};
      result.maps.clear();
      return;
    }
  }
}

ComputeThread::ComputeThread(UnitRunner& runner, int wake_fd)
    : runner_(runner), wake_fd_(wake_fd), thread_([this] { loop(); }) {}

ComputeThread::~ComputeThread() {
  cancel_ = true;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ComputeThread::start(wire::Lease lease) {
  lease_id_ = lease.lease_id;
  counters_.reset();
  cancel_ = false;
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(lease);
  }
  changed_.notify_all();
}

wire::LeaseProgress ComputeThread::progress() const {
  return {lease_id_, counters_.done, counters_.total, counters_.tokens};
}

std::optional<wire::UnitResult> ComputeThread::take_result() {
  const std::lock_guard lock(mutex_);
  std::optional<wire::UnitResult> result = std::exchange(result_, std::nullopt);
  if (result) lease_id_.clear();
  return result;
}

void ComputeThread::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return leaving_ || next_.has_value(); });
    if (leaving_) return;
    const wire::Lease lease = std::move(*next_);
    next_.reset();
    lock.unlock();
    wire::UnitResult result = run(lease);
    lock.lock();
    result_ = std::move(result);
    const uint64_t one = 1;
    if (write(wake_fd_, &one, sizeof(one)) < 0) {
      // The counter of an eventfd is full only when the reader is awake already.
    }
  }
}

wire::UnitResult ComputeThread::run(const wire::Lease& lease) {
  const auto began = std::chrono::steady_clock::now();
  wire::UnitResult result;
  try {
    result = runner_.run(lease.unit, counters_, cancel_);
    refuse_non_finite(result);
  } catch (const std::bad_alloc&) {
    result = failure(ErrorCode::oom, "the worker ran out of memory");
  } catch (const std::exception& e) {
    result = failure(ErrorCode::internal, e.what());
  }
  if (result.failure) {
    // What the other side would not accept as text (a path, a long list) must not cost the message.
    std::string& message = result.failure->message;
    message = replace_invalid_utf8(message.substr(0, kLongestMessage));
  }
  result.lease_id = lease.lease_id;
  result.unit_id = lease.unit.unit_id;
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  result.wall_ms = took.count();
  return result;
}

}  // namespace kvsweep::service
