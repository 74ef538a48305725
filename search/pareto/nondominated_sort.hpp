// Non-dominated sorting: front 0 is dominated by nobody, front k+1 only by members of fronts 0..k.
#pragma once

#include <span>
#include <vector>

#include "search/pareto/objectives.hpp"

namespace kvsweep::search {

// Indices into the points; fronts in order, each front ascending by index. Points must be finite.
using Fronts = std::vector<std::vector<int>>;

// Two objectives: sort by bytes then loss, then put each point on the first front whose lightest
// loss so far does not dominate it, found by bisection (Jensen, IEEE Trans. Evol. Comput. 7(5),
// 2003, section III). O(n log n) time, O(n) memory.
// Example: (1,4) (2,2) (3,3) (4,1) (4,4) -> {0, 1, 3}, {2}, {4}:
// (3,3) is dominated by (2,2); (4,4) by (3,3).
Fronts nondominated_fronts(std::span<const Objectives> points);

// Any number m of objectives, all minimised: count dominators, peel front after front (Deb, Pratap,
// Agarwal, Meyarivan, IEEE Trans. Evol. Comput. 6(2), 2002, section III-A). O(m n^2) time, O(n^2)
// memory in the worst case. All points must have the same length.
Fronts nondominated_fronts(std::span<const std::vector<double>> points);

}  // namespace kvsweep::search
