// A member of a population.
#pragma once

#include <cstdint>

#include "search/pareto/objectives.hpp"
#include "search/space/space.hpp"

namespace kvsweep::search {

struct Member {
  int64_t number = 0;  // of its proposal
  Genome genome;
  bool feasible = true;
  Objectives objectives;  // of feasible members
  double violation = 0;   // of infeasible members, >= 0
  int rank = 0;           // front, 0 = best; infeasible members follow the last front
  double crowding = 0;    // within the front; 0 for infeasible members
};

}  // namespace kvsweep::search
