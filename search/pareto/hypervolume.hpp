// Hypervolume of two objectives: the area that a set dominates below a reference point.
#pragma once

#include <span>

#include "search/pareto/objectives.hpp"

namespace kvsweep::search {

// Sort by bytes and sum the steps of the staircase (Fonseca, Paquete, Lopez-Ibanez, CEC 2006, the
// two-dimensional base case). O(n log n).
// Example: (1,3) (2,1), reference (4,4): from bytes 1 to 2 height 4-3, from 2 to 4 height 4-1:
// 1*1 + 2*3 = 7.
// Points that do not lie strictly below the reference in both objectives contribute 0, as do
// dominated points and further copies; points with a NaN or an infinity are left out.
double hypervolume(std::span<const Objectives> points, const Objectives& reference);

// The same as a share, 0..1, of the box between (0, 0) and the reference, for display. Values below
// 0 (a map that beats the baseline by chance) count as 0. 0 when the box is empty.
double hypervolume_share(std::span<const Objectives> points, const Objectives& reference);

}  // namespace kvsweep::search
