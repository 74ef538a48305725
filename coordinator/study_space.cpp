#include "coordinator/study_space.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/catalog/page_layout.hpp"

namespace kvsweep::coordinator {

Result<StudySpace> StudySpace::make(const StudySpec& spec, const ModelGeometry& geometry) {
  StudySpace made;
  KVSWEEP_ASSIGN(made.scheme_, make_scheme(spec.scheme));
  if (made.scheme_.info().counts_tokens() && made.scheme_.residual >= spec.at.context) {
    return bad_input(
        fmt::format("scheme.residual is {}, but bytes are counted at {} tokens (at.context): none "
                    "of them would be "
                    "coded; keep fewer tokens exact, or count at a longer context",
                    made.scheme_.residual, spec.at.context));
  }
  made.geometry_ = geometry;
  made.base_ = spec.baseline_kv;
  made.at_ = spec.at;
  made.limits_ = spec.limits;
  const std::vector<Pair> candidates =
      spec.search.candidates.empty() ? default_candidates(made.scheme_) : spec.search.candidates;
  for (Pair pair : candidates) {
    KVSWEEP_TRY(check_map(uniform_map(made.scheme_, geometry.num_layers(), pair), geometry));
  }
  int groups = spec.search.groups;
  if (groups == kDefaultGroups) groups = std::min(groups, geometry.num_layers());
  KVSWEEP_ASSIGN(made.space_, search::even_groups(geometry.num_layers(), groups, candidates,
                                                  made.scheme_, geometry, spec.baseline_kv));
  if (spec.limits.max_bits && made.least_bits() > *spec.limits.max_bits) {
    return bad_input(fmt::format(
        "no map of the search space fits limits.max_bits {}: the lightest needs {:.3f} effective "
        "bits at {} tokens; raise the limit or add lighter candidates",
        *spec.limits.max_bits, made.least_bits(), spec.at.context));
  }
  return made;
}

MapCost StudySpace::cost(const PrecisionMap& map) const {
  const CacheLayout layout = cache_layout(map, geometry_, base_);
  return {.bytes = static_cast<double>(layout.bytes(at_.context, at_.batch)),
          .effective_bits = effective_bits(layout, geometry_, at_.context)};
}

search::HardLimit StudySpace::hard_limit() const {
  if (!limits_.max_bits) return {};
  return [space = *this, most = *limits_.max_bits](const search::Genome& genome) {
    return space.cost(space.decode(genome)).effective_bits <= most;
  };
}

std::vector<search::Genome> StudySpace::uniform_genomes() const {
  std::vector<search::Genome> genomes;
  for (Pair pair : space_.groups.front().candidates) {
    search::Genome genome;
    for (const search::Group& group : space_.groups) {
      const auto it = std::find(group.candidates.begin(), group.candidates.end(), pair);
      if (it == group.candidates.end()) break;
      genome.push_back(static_cast<int>(it - group.candidates.begin()));
    }
    if (genome.size() == space_.groups.size()) genomes.push_back(std::move(genome));
  }
  return genomes;
}

double StudySpace::least_bits() const {
  return cost(decode(search::Genome(space_.groups.size(), 0))).effective_bits;
}

}  // namespace kvsweep::coordinator
