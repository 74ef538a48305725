// Uniform crossover.
#pragma once

#include "core/rng.hpp"
#include "search/space/space.hpp"

namespace kvsweep::search {

// One child: each gene from the second parent with probability `swap`, else from the first
// (Syswerda, ICGA 1989). O(genes). {0,0,0} x {1,1,1} -> e.g. {0,1,0}.
Genome uniform_crossover(const Genome& first, const Genome& second, double swap, Rng& rng);

}  // namespace kvsweep::search
