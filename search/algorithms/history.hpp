// History: which genomes a search has proposed or learnt of. A genome is *seen* when it is pending,
// evaluated or failed; a seen genome is never proposed again.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "search/space/space.hpp"

namespace kvsweep::search {

// FNV-1a over the genes (Fowler, Noll, Vo). Only spreads keys over buckets: nothing observable
// depends on it.
struct GenomeHash {
  size_t operator()(const Genome& genome) const {
    uint64_t hash = 14695981039346656037ULL;
    for (int gene : genome) hash = (hash ^ static_cast<uint32_t>(gene)) * 1099511628211ULL;
    return static_cast<size_t>(hash ^ (hash >> 32));
  }
};

// All operations O(groups) expected. Not thread-safe.
class History {
 public:
  bool seen(const Genome& genome) const { return told_.contains(genome); }

  // Marks as seen and pending; no effect when seen already.
  void propose(const Genome& genome) {
    if (told_.emplace(genome, false).second) order_.push_back(genome);
  }

  // Marks as seen and told. False when it was told before.
  bool tell(const Genome& genome) {
    propose(genome);
    bool& told = told_[genome];
    const bool first = !told;
    told = true;
    return first;
  }

  const std::vector<Genome>& order() const { return order_; }  // as they became seen

 private:
  std::unordered_map<Genome, bool, GenomeHash> told_;
  std::vector<Genome> order_;
};

}  // namespace kvsweep::search
