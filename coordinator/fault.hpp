// Crash points for tests, always built in: KVSWEEP_FAULT=POINT:N ends the process with exit status
// 77, without any clean-up, when POINT is passed for the Nth time (POINT alone: the first).
//
//   exit_after_commit    a measured result is durable in the store, and not yet acknowledged
//   exit_before_commit   the same, just before the commit
#pragma once

#include <string_view>

namespace kvsweep::coordinator {

inline constexpr int kFaultExit = 77;

void fault_point(std::string_view point);

}  // namespace kvsweep::coordinator
