// What happens to a work unit that failed, by failure class (design §3, Errors).
#pragma once

#include "core/result.hpp"

namespace kvsweep::coordinator {

struct RetryRule {
  int attempts = 1;             // failures of this class after which the unit has failed; 0 = never
  bool elsewhere_only = false;  // retried only while a live worker exists that has not failed on it
};

struct RetryLimits {
  int max_attempts = 3;      // CoordinatorOptions::max_attempts
  int max_lost_workers = 5;  // a unit that takes five workers down is the likelier culprit
};

// class        attempts           why
// oom          max_attempts       another worker may have more memory; retried there first
// timeout      max_attempts       a stuck machine is likelier than a stuck unit
// preempted    unlimited          the worker was told to stop; never charged to the unit
// worker_lost  max_lost_workers   machines die, but not five times in a row over one unit
// numerics     1                  deterministic within a numerics class: a retry cannot help
// bad_input    2, elsewhere only  a folder may be missing on one machine; if it is missing on two,
//                                 the spec is wrong
// internal     max_attempts
RetryRule retry_rule(ErrorCode failure_class, const RetryLimits& limits);

}  // namespace kvsweep::coordinator
