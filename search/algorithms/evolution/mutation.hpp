// Mutation of ordinal genes, and one-step neighbours.
#pragma once

#include <vector>

#include "core/rng.hpp"
#include "search/space/space.hpp"

namespace kvsweep::search {

// Another value for gene `index`, never the current one: with probability `step` one up or down
// (the only possible direction at an end), else uniform over the others. Genes are ordinal in
// bytes and usually monotone in loss, hence the steps; "usually", hence the redraws.
// The gene must have at least two candidates. O(1).
int mutated_gene(const Space& space, const Genome& genome, size_t index, double step, Rng& rng);

// Every gene with at least two candidates mutates with probability 1/m, m their number, so one gene
// in the mean (Muehlenbein, PPSN 1992). O(genes).
Genome mutated(const Space& space, const Genome& genome, double step, Rng& rng);

// The same, but at least one gene differs from `genome` (unless none can): one gene at random when
// the coins left all alone.
Genome mutated_for_certain(const Space& space, const Genome& genome, double step, Rng& rng);

// All genomes in which one gene is one step higher or lower. O(genes^2).
std::vector<Genome> one_step_neighbours(const Space& space, const Genome& genome);

}  // namespace kvsweep::search
