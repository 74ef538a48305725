#include "search/algorithms/evolution/crossover.hpp"

namespace kvsweep::search {

Genome uniform_crossover(const Genome& first, const Genome& second, double swap, Rng& rng) {
  Genome child = first;
  for (size_t i = 0; i < child.size(); ++i) {
    if (rng.chance(swap)) child[i] = second[i];
  }
  return child;
}

}  // namespace kvsweep::search
