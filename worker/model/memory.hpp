// How much memory this process may still take.
#pragma once

#include <cstdint>

namespace kvsweep::model {

// Bytes: the smaller of what the machine has available (/proc/meminfo) and what the control group
// has left (cgroup v2 or v1). INT64_MAX when neither can be read.
int64_t available_memory();

}  // namespace kvsweep::model
