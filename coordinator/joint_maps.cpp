#include "coordinator/joint_maps.hpp"

#include <algorithm>

namespace kvsweep::coordinator {

namespace {

constexpr int64_t kExactOpen = 16;
constexpr int64_t kExactSearch = 8;
constexpr int64_t kBatch = 16;  // sequences that a worker decodes together

}  // namespace

JointMaps joint_maps(const Scheme& scheme, int64_t examples, int64_t option) {
  if (option > 0) {
    const int64_t maps = std::min(option, kMostMapsPerUnit);
    return {.open = maps, .search = maps};
  }
  if (scheme.prefill == Prefill::exact) return {.open = kExactOpen, .search = kExactSearch};
  return {.open = std::clamp<int64_t>(kBatch / std::max<int64_t>(examples, 1), 1, kBatch)};
}

}  // namespace kvsweep::coordinator
