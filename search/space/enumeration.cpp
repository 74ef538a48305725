#include "search/space/enumeration.hpp"

namespace kvsweep::search {

int64_t rank_of(const Space& space, const Genome& genome) {
  int64_t rank = 0;
  for (size_t i = 0; i < genome.size(); ++i) {
    rank = rank * static_cast<int64_t>(space.groups[i].candidates.size()) + genome[i];
  }
  return rank;
}

Genome genome_at(const Space& space, int64_t rank) {
  Genome genome(space.groups.size());
  for (size_t i = genome.size(); i-- > 0;) {
    const auto levels = static_cast<int64_t>(space.groups[i].candidates.size());
    genome[i] = static_cast<int>(rank % levels);
    rank /= levels;
  }
  return genome;
}

}  // namespace kvsweep::search
