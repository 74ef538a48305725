// Crowding distance, and thinning of a front by it.
//
// Paper: Deb, Pratap, Agarwal, Meyarivan, IEEE Trans. Evol. Comput. 6(2), 2002, section III-B.
// Along each objective the points are sorted, and a point gets
//     d_i = sum over objectives of (f[i+1] - f[i-1]) / (f_max - f_min)
// On a front of two objectives both orders are one: bytes ascending is loss descending.
//
// Deviations:
// - After every removal the distances of the two neighbours are computed anew. Dropping the k worst
//   by one initial computation empties whole regions (Kukkonen and Deb, CEC 2006).
// - Only one copy of an objective vector is a boundary point with infinite distance; in the
// original
//   every copy of an extreme vector survives for ever.
// - An objective without range contributes 0 instead of dividing by 0.
// - Ties are decided by `preferred`, never by the order of the input.
//
// Example: (0,10) (1,9) (5,5) (10,0); ranges 10 and 10. (1,9): 5/10 + 5/10 = 1; (5,5): 9/10 + 9/10
// = 1.8; the ends are infinite. Keeping 3 removes (1,9), and (5,5) now has 10/10 + 10/10 = 2.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "search/pareto/objectives.hpp"

namespace kvsweep::search {

// Strict order on indices of the front: true when the first is to be kept rather than the second at
// equal crowding.
using Preferred = std::function<bool(int, int)>;

struct ThinnedFront {
  std::vector<int> kept;         // indices into the front, ascending
  std::vector<double> crowding;  // of kept[i], after all removals
};

// Removes the most crowded point until `keep` are left (all, when there are no more than that).
// `front` must be mutually non-dominated and finite. O(n log n + removals * n).
ThinnedFront thin_front(std::span<const Objectives> front, int keep, const Preferred& preferred);

}  // namespace kvsweep::search
