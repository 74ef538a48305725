#include "search/algorithms/evolution/mutation.hpp"

namespace kvsweep::search {
namespace {

int levels_of(const Space& space, size_t gene) {
  return static_cast<int>(space.groups[gene].candidates.size());
}

std::vector<size_t> movable_genes(const Space& space) {
  std::vector<size_t> genes;
  for (size_t i = 0; i < space.groups.size(); ++i) {
    if (levels_of(space, i) > 1) genes.push_back(i);
  }
  return genes;
}

}  // namespace

int mutated_gene(const Space& space, const Genome& genome, size_t index, double step, Rng& rng) {
  const int levels = levels_of(space, index);
  const int value = genome[index];
  if (rng.chance(step)) {
    if (value == 0) return 1;
    if (value == levels - 1) return value - 1;
    return rng.chance(0.5) ? value + 1 : value - 1;
  }
  const int other = static_cast<int>(rng.below(static_cast<uint64_t>(levels - 1)));
  return other >= value ? other + 1 : other;
}

Genome mutated(const Space& space, const Genome& genome, double step, Rng& rng) {
  const std::vector<size_t> genes = movable_genes(space);
  Genome child = genome;
  for (size_t gene : genes) {
    if (rng.chance(1.0 / static_cast<double>(genes.size()))) {
      child[gene] = mutated_gene(space, genome, gene, step, rng);
    }
  }
  return child;
}

Genome mutated_for_certain(const Space& space, const Genome& genome, double step, Rng& rng) {
  Genome child = mutated(space, genome, step, rng);
  if (child != genome) return child;
  const std::vector<size_t> genes = movable_genes(space);
  if (genes.empty()) return child;
  const size_t gene = genes[rng.below(genes.size())];
  child[gene] = mutated_gene(space, genome, gene, step, rng);
  return child;
}

std::vector<Genome> one_step_neighbours(const Space& space, const Genome& genome) {
  std::vector<Genome> neighbours;
  for (size_t i = 0; i < genome.size(); ++i) {
    for (int value : {genome[i] - 1, genome[i] + 1}) {
      if (value < 0 || value >= levels_of(space, i)) continue;
      neighbours.push_back(genome);
      neighbours.back()[i] = value;
    }
  }
  return neighbours;
}

}  // namespace kvsweep::search
