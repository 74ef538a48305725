// Space: layer groups, each with candidate pairs. A genome is one candidate index per group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/precision_map.hpp"
#include "core/result.hpp"

namespace kvsweep::search {

using Genome = std::vector<int>;

struct Group {
  std::vector<int> layers;       // ascending; every layer of the model is in exactly one group
  std::vector<Pair> candidates;  // ordered by bytes ascending, then by name: genes are ordinal
};

struct Space {
  std::vector<Group> groups;

  double size() const;  // number of genomes; 1 when there are no groups
  bool contains(const Genome& genome) const;
  // `genome` must be contained.
  PrecisionMap decode(const Genome& genome, const Scheme& scheme) const;
};

// `groups` runs of neighbouring layers whose sizes differ by at most one (clustering by measured
// sensitivity replaces this later); the longer runs come first. 30 layers in 8 groups: six runs of
// 4, then two of 3. Error when groups is not in 1..num_layers, when the geometry has another
// number of layers, or when candidates is empty or holds duplicates.
Result<Space> even_groups(int num_layers, int groups, const std::vector<Pair>& candidates,
                          const Scheme& scheme, const ModelGeometry& geometry, BaseType base);

}  // namespace kvsweep::search
