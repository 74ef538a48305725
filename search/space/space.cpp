#include "search/space/space.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/catalog/page_layout.hpp"

namespace kvsweep::search {
namespace {

// Bits that one token occupies in the layers of a group under `pair`, scales and zeros included.
// Windows and page padding are left out: they depend on the context, the order must not.
double bits_per_token(const std::vector<int>& layers, Pair pair, const Scheme& scheme,
                      const ModelGeometry& geometry, BaseType base) {
  double bits = 0;
  for (int layer : layers) {
    const LayerGeometry& shape = geometry.layers[layer];
    const double per_element = format_bits(scheme.key_format(pair.k), shape.head_dim, base) +
                               format_bits(scheme.value_format(pair.v), shape.head_dim, base);
    bits += per_element * shape.kv_heads * shape.head_dim;
  }
  return bits;
}

std::vector<Pair> ordered_by_bytes(const std::vector<int>& layers,
                                   const std::vector<Pair>& candidates, const Scheme& scheme,
                                   const ModelGeometry& geometry, BaseType base) {
  struct Keyed {
    double bits;
    std::string name;
    Pair pair;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(candidates.size());
  for (Pair pair : candidates) {
    keyed.push_back({bits_per_token(layers, pair, scheme, geometry, base), to_string(pair), pair});
  }
  std::sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    return a.bits != b.bits ? a.bits < b.bits : a.name < b.name;
  });
  std::vector<Pair> ordered;
  ordered.reserve(keyed.size());
  for (const Keyed& entry : keyed) ordered.push_back(entry.pair);
  return ordered;
}

Status check_candidates(const std::vector<Pair>& candidates) {
  if (candidates.empty()) {
    return bad_input("search.candidates is empty; list at least one pair, such as K8V4");
  }
  std::vector<Pair> sorted = candidates;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return bad_input("search.candidates holds " + to_string(*twice) +
                     " more than once; list each pair once");
  }
  return {};
}

}  // namespace

double Space::size() const {
  double genomes = 1;
  for (const Group& group : groups) genomes *= static_cast<double>(group.candidates.size());
  return genomes;
}

bool Space::contains(const Genome& genome) const {
  if (genome.size() != groups.size()) return false;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (genome[i] < 0 || genome[i] >= static_cast<int>(groups[i].candidates.size())) return false;
  }
  return true;
}

PrecisionMap Space::decode(const Genome& genome, const Scheme& scheme) const {
  if (!contains(genome)) throw std::invalid_argument("Space::decode: genome outside the space");
  size_t layers = 0;
  for (const Group& group : groups) layers += group.layers.size();
  PrecisionMap map;
  map.scheme = scheme;
  map.layers.resize(layers);
  for (size_t i = 0; i < groups.size(); ++i) {
    for (int layer : groups[i].layers) map.layers.at(layer) = groups[i].candidates[genome[i]];
  }
  return map;
}

Result<Space> even_groups(int num_layers, int groups, const std::vector<Pair>& candidates,
                          const Scheme& scheme, const ModelGeometry& geometry, BaseType base) {
  if (geometry.num_layers() != num_layers) {
    return bad_input("the geometry describes " + std::to_string(geometry.num_layers()) +
                     " layers, but the groups are for " + std::to_string(num_layers));
  }
  if (groups < 1 || groups > num_layers) {
    return bad_input("search.groups is " + std::to_string(groups) + "; the model has " +
                     std::to_string(num_layers) + " layers, so use 1 to " +
                     std::to_string(num_layers));
  }
  KVSWEEP_TRY(check_candidates(candidates));
  Space space;
  int next_layer = 0;
  for (int i = 0; i < groups; ++i) {
    const int length = num_layers / groups + (i < num_layers % groups ? 1 : 0);
    Group group;
    for (int j = 0; j < length; ++j) group.layers.push_back(next_layer++);
    group.candidates = ordered_by_bytes(group.layers, candidates, scheme, geometry, base);
    space.groups.push_back(std::move(group));
  }
  return space;
}

}  // namespace kvsweep::search
