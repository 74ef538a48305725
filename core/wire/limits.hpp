// Longest texts of messages, in bytes: what `encode` cuts to and `decode` insists on.
#pragma once

#include <cstddef>

namespace kvsweep::wire {

inline constexpr size_t kMaxId = 256;
inline constexpr size_t kMaxUnitId = 4096;  // of units and leases: names every piece of the unit
inline constexpr size_t kMaxText = 1024;
inline constexpr size_t kMaxReason = 16384;
inline constexpr size_t kMaxPath = 4096;

}  // namespace kvsweep::wire
