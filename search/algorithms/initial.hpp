// The first proposals of every algorithm that does not enumerate: genomes given in the options,
// then the uniform ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/algorithms/algorithm.hpp"
#include "search/algorithms/history.hpp"

namespace kvsweep::search {

// One genome per pair that occurs among the candidates, in the order in which it is first met: all
// groups that offer the pair take it. A group that does not takes the candidate at the same
// relative place: index 2 of 0..4 in the first group that offers it becomes 1 of 0..2.
// May hold duplicates. O(pairs * groups * candidates).
std::vector<Genome> uniform_genomes(const Space& space);

// Hands out unseen, allowed genomes of the list in order. Which one comes next depends on the
// history alone, so a restored search goes on where the first one stopped. Not thread-safe.
class InitialQueue {
 public:
  struct Entry {
    Genome genome;
    std::string origin;  // "initial" or "uniform"
  };
  InitialQueue(const Space& space, const AlgorithmOptions& options);
  std::optional<Entry> next(const HardLimit& limit, const History& history);

 private:
  std::vector<Entry> entries_;
  size_t position_ = 0;
};

}  // namespace kvsweep::search
