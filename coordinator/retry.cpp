#include "coordinator/retry.hpp"

namespace kvsweep::coordinator {

RetryRule retry_rule(ErrorCode failure_class, const RetryLimits& limits) {
  switch (failure_class) {
    case ErrorCode::preempted:
      return {.attempts = 0};
    case ErrorCode::worker_lost:
      return {.attempts = limits.max_lost_workers};
    case ErrorCode::numerics:
      return {.attempts = 1};
    case ErrorCode::bad_input:
      return {.attempts = 2, .elsewhere_only = true};
    case ErrorCode::oom:
    case ErrorCode::timeout:
    case ErrorCode::internal:
    default:
      return {.attempts = limits.max_attempts};
  }
}

}  // namespace kvsweep::coordinator
