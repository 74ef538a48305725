// Binary tournament selection.
#pragma once

#include <optional>
#include <span>

#include "core/rng.hpp"
#include "search/algorithms/evolution/lineage.hpp"
#include "search/algorithms/evolution/member.hpp"

namespace kvsweep::search {

// The crowded-comparison order (Deb, Pratap, Agarwal, Meyarivan, IEEE Trans. Evol. Comput. 6(2),
// 2002, section III-B) made total: lower rank, larger crowding, fewer children, genome order. Ranks
// already put feasible members first.
// Example: rank 0 crowding 0.1 beats rank 1 crowding 9; at equal rank, crowding 9 beats 0.1.
bool beats(const Member& a, const Member& b, const ChildCount& children);

// Two distinct members, neither of them `excluded`, are drawn; the better one wins. With a single
// one left it wins undrawn. nullopt when none is left. O(1). Returns an index into `members`.
std::optional<size_t> tournament(std::span<const Member> members, const ChildCount& children,
                                 std::optional<size_t> excluded, Rng& rng);

}  // namespace kvsweep::search
