// Genomes as numbers (mixed radix), for spaces small enough to be enumerated.
#pragma once

#include <cstdint>

#include "search/space/space.hpp"

namespace kvsweep::search {

// Spaces up to this size may be enumerated, and exhaustion is exact in them for any limit. A table
// of that many entries takes a few MiB; larger spaces are never walked or allocated for.
inline constexpr int64_t kEnumerable = 1 << 20;

inline bool enumerable(const Space& space) {
  return space.size() <= static_cast<double>(kEnumerable);
}

// rank 0 is the all-zero genome and the last gene turns fastest, so ranks follow the genome order:
// groups with 3 and 5 candidates, genome {1, 2} <-> 1 * 5 + 2 = 7. O(groups). The space must be
// enumerable, the genome contained, the rank in [0, size).
int64_t rank_of(const Space& space, const Genome& genome);
Genome genome_at(const Space& space, int64_t rank);

}  // namespace kvsweep::search
