#include "search/algorithms/evolution/neighbour.hpp"

#include <vector>

#include "search/algorithms/evolution/mutation.hpp"
#include "search/algorithms/sampler.hpp"

namespace kvsweep::search {

std::optional<Neighbour> unseen_neighbour(const Space& space, const Archive& archive,
                                          const History& history, const HardLimit& limit,
                                          Rng& rng) {
  std::vector<const ArchivedGenome*> members;
  for (const auto& [bytes, vector] : archive.vectors()) {
    for (const ArchivedGenome& genome : vector.genomes) members.push_back(&genome);
  }
  if (members.empty()) return std::nullopt;
  const size_t first = rng.below(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    const ArchivedGenome& member = *members[(first + i) % members.size()];
    std::vector<Genome> neighbours = one_step_neighbours(space, member.genome);
    if (neighbours.empty()) continue;
    const size_t start = rng.below(neighbours.size());
    for (size_t j = 0; j < neighbours.size(); ++j) {
      Genome& genome = neighbours[(start + j) % neighbours.size()];
      if (!history.seen(genome) && is_allowed(limit, genome)) {
        return Neighbour{std::move(genome), member.number};
      }
    }
  }
  return std::nullopt;
}

}  // namespace kvsweep::search
