// Unseen one-step neighbours of the archive: local search for when breeding finds nothing new.
#pragma once

#include <optional>

#include "core/rng.hpp"
#include "search/algorithms/algorithm.hpp"
#include "search/algorithms/history.hpp"
#include "search/pareto/archive.hpp"

namespace kvsweep::search {

struct Neighbour {
  Genome genome;
  int64_t parent = 0;  // proposal number of the archive member
};

// Starts at a random genome of the archive and a random neighbour of it, and takes the first
// unseen, allowed one in cyclic order. nullopt when there is none. O(archive * groups^2) when all
// are seen.
std::optional<Neighbour> unseen_neighbour(const Space& space, const Archive& archive,
                                          const History& history, const HardLimit& limit, Rng& rng);

}  // namespace kvsweep::search
