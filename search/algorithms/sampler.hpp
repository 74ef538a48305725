// Unseen genomes at random, until there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/rng.hpp"
#include "search/algorithms/algorithm.hpp"
#include "search/algorithms/history.hpp"

namespace kvsweep::search {

inline bool is_allowed(const HardLimit& limit, const Genome& genome) {
  return !limit || limit(genome);
}

// Each gene uniform over its candidates.
Genome uniform_genome(const Space& space, Rng& rng);

// Lowers genes, one step of a random one at a time, until the limit allows the genome. False when
// even the lightest genome reached is refused. O(groups * levels) calls of the limit.
bool lower_until_allowed(const HardLimit& limit, Genome& genome, Rng& rng);

// The allowed genomes of an enumerable space, with a Fenwick tree (Fenwick, Softw. Pract. Exper.
// 24(3), 1994) that counts the unseen ones, so the k-th unseen genome in rank order is found in
// O(log n) and a draw depends on nothing but the set of unseen genomes. Built in one pass.
class UnseenPool {
 public:
  UnseenPool(const Space& space, const HardLimit& limit);
  void remove(const Genome& genome);  // now seen; no effect when absent
  std::optional<Genome> draw(Rng& rng) const;

 private:
  const Space& space_;
  std::vector<int32_t> ranks_;   // allowed genomes, ascending
  std::vector<bool> present_;    // unseen, beside ranks_
  std::vector<int32_t> counts_;  // 1-based Fenwick tree over present_
  int64_t unseen_ = 0;
};

// Draws of an unseen, allowed genome, in three steps.
// 1. A few uniform draws: enough while the space is mostly unseen and allowed.
// 2. Enumerable space: an exactly uniform draw from the pool; none left = exhausted, exactly.
// 3. Larger space: draws lowered until allowed (a tight limit refuses nearly every uniform draw),
//    then the genomes that differ in one gene from a seen one. When the limit is closed downwards
//    and the lightest genome is seen, some unseen allowed genome is one gene away from a seen one
//    unless none is left: walk from it down to the lightest and stop at the first seen genome.
//    Cost of that last step: O(seen * groups * levels), bounded by the history, not the space.
// `space`, `limit` and `history` must outlive the sampler. Not thread-safe.
class UnseenSampler {
 public:
  UnseenSampler(const Space& space, const HardLimit& limit, const History& history);
  std::optional<Genome> draw(Rng& rng);

 private:
  bool fresh(const Genome& genome) const;
  std::optional<Genome> draw_from_pool(Rng& rng);
  std::optional<Genome> draw_lowered(Rng& rng) const;
  std::optional<Genome> beside_seen(Rng& rng) const;

  const Space& space_;
  const HardLimit& limit_;
  const History& history_;
  std::optional<UnseenPool> pool_;  // built when first needed
  size_t removed_ = 0;              // how much of history_.order() the pool has followed
};

}  // namespace kvsweep::search
