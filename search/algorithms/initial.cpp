#include "search/algorithms/initial.hpp"

#include <algorithm>

#include "search/algorithms/sampler.hpp"

namespace kvsweep::search {
namespace {

int index_of(const Group& group, Pair pair) {
  const auto found = std::find(group.candidates.begin(), group.candidates.end(), pair);
  return found == group.candidates.end() ? -1 : static_cast<int>(found - group.candidates.begin());
}

// Index `index` of 0..from-1 carried over to 0..to-1, rounded to the nearest, halves up.
int same_place(int index, int from, int to) {
  if (from <= 1) return 0;
  return (2 * index * (to - 1) + (from - 1)) / (2 * (from - 1));
}

Genome uniform_genome_of(const Space& space, const Group& origin, int index) {
  Genome genome;
  for (const Group& group : space.groups) {
    const int own = index_of(group, origin.candidates[index]);
    const int from = static_cast<int>(origin.candidates.size());
    const int to = static_cast<int>(group.candidates.size());
    genome.push_back(own >= 0 ? own : same_place(index, from, to));
  }
  return genome;
}

}  // namespace

std::vector<Genome> uniform_genomes(const Space& space) {
  std::vector<Pair> done;
  std::vector<Genome> genomes;
  for (const Group& group : space.groups) {
    for (size_t i = 0; i < group.candidates.size(); ++i) {
      const Pair pair = group.candidates[i];
      if (std::find(done.begin(), done.end(), pair) != done.end()) continue;
      done.push_back(pair);
      genomes.push_back(uniform_genome_of(space, group, static_cast<int>(i)));
    }
  }
  return genomes;
}

InitialQueue::InitialQueue(const Space& space, const AlgorithmOptions& options) {
  for (const Genome& genome : options.initial) entries_.push_back({genome, "initial"});
  for (Genome& genome : uniform_genomes(space)) entries_.push_back({std::move(genome), "uniform"});
}

std::optional<InitialQueue::Entry> InitialQueue::next(const HardLimit& limit,
                                                      const History& history) {
  for (; position_ < entries_.size(); ++position_) {
    const Entry& entry = entries_[position_];
    if (!history.seen(entry.genome) && is_allowed(limit, entry.genome)) return entry;
  }
  return std::nullopt;
}

}  // namespace kvsweep::search
