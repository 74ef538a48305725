// Runs the INT4 kernel on the current device and compares it with the same arithmetic on the CPU.
// Only in builds with CUDA.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/kernels/int4_attention.hpp"

namespace kvsweep::kernels {

// Scores from host memory: copies queries [kv_heads * query_group, head_dim] and pages to the
// device, runs the kernel, waits, copies the scores [kv_heads * query_group, tokens] back. Pointers
// in `args` are ignored. Empty on success, else one sentence.
std::string int4_scores_from_host(Int4Scores args, const std::vector<float>& queries,
                                  const std::vector<std::vector<uint8_t>>& pages,
                                  std::vector<float>& scores);

// Two pages of known codes, two KV heads, three query heads each. Empty when every score is within
// rounding of the CPU's; else one sentence with the first that is not.
std::string int4_self_check();

}  // namespace kvsweep::kernels
