// How many maps share a unit, and with it how many candidates a search is asked for at once
// (docs/decisions/0011-joint-units.md).
#pragma once

#include <cstdint>

#include "core/scheme.hpp"

namespace kvsweep::coordinator {

// More are refused as an option, and never lent: a unit's id names each of them.
inline constexpr int64_t kMostMapsPerUnit = 64;

struct JointMaps {
  int64_t open =
      1;  // of maps that are known beforehand: a first population, a front measured again
  int64_t search = 1;  // of maps that a search would choose better one after the other
};

// `option`: CoordinatorOptions::maps_per_unit, 0 = by itself: under exact prefill each prompt is
// computed once for all maps of a unit; otherwise maps only fill up the worker's batch, when they
// are measured on fewer examples than it has places.
JointMaps joint_maps(const Scheme& scheme, int64_t examples, int64_t option);

}  // namespace kvsweep::coordinator
