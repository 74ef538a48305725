// Environmental selection: who stays in the population.
#pragma once

#include <vector>

#include "search/algorithms/evolution/lineage.hpp"
#include "search/algorithms/evolution/member.hpp"

namespace kvsweep::search {

// Ranks the members and keeps the best `capacity` of them.
//
// Paper: Deb, Pratap, Agarwal, Meyarivan, IEEE Trans. Evol. Comput. 6(2), 2002, sections III-C
// (elitist selection by front, then crowding) and VI (feasible first, then smaller violation).
// Feasible members are sorted into fronts; whole fronts are kept while they fit, the first that
// does not is thinned by crowding, recomputed after every removal (pareto/crowding.hpp); infeasible
// members follow in order of violation, equal violations sharing a rank.
// Ties: fewer children, then genome order. Survivors come out in order of rank, with rank and
// crowding set. O(n log n + removals * n).
//
// Example, capacity 3: feasible (1,3) (2,2) (3,1) (3,3) and an infeasible one: the first three stay
// with rank 0, crowding infinite, 2, infinite.
std::vector<Member> survivors(std::vector<Member> members, int capacity,
                              const ChildCount& children);

}  // namespace kvsweep::search
