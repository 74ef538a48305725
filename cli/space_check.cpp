#include "cli/space_check.hpp"

#include <algorithm>

#include "coordinator/study_space.hpp"
#include "core/rng.hpp"
#include "search/space/enumeration.hpp"

namespace kvsweep::cli {
namespace {

constexpr double kCountable = 1 << 16;
constexpr int64_t kSample = 20'000;

search::Genome random_genome(const search::Space& space, Rng& rng) {
  search::Genome genome;
  for (const search::Group& group : space.groups) {
    genome.push_back(static_cast<int>(rng.below(group.candidates.size())));
  }
  return genome;
}

void count_fitting(const coordinator::StudySpace& space, SpaceCheck& check) {
  const search::HardLimit limit = space.hard_limit();
  if (!limit) {
    check.fitting = check.size;
    return;
  }
  check.exact = check.size <= kCountable;
  check.looked_at = check.exact ? static_cast<int64_t>(check.size) : kSample;
  int64_t fitting = 0;
  Rng rng(1, "check");
  for (int64_t i = 0; i < check.looked_at; ++i) {
    fitting += limit(check.exact ? search::genome_at(space.space(), i)
                                 : random_genome(space.space(), rng));
  }
  check.fitting = check.size * static_cast<double>(fitting) / static_cast<double>(check.looked_at);
}

}  // namespace

Result<SpaceCheck> check_space(const StudySpec& spec, const ModelGeometry& geometry) {
  KVSWEEP_ASSIGN(const coordinator::StudySpace space,
                 coordinator::StudySpace::make(spec, geometry));
  SpaceCheck check;
  check.size = space.space().size();
  check.groups = static_cast<int>(space.space().groups.size());
  search::Genome lightest;
  search::Genome heaviest;
  for (const search::Group& group : space.space().groups) {
    check.candidates = std::max(check.candidates, static_cast<int>(group.candidates.size()));
    lightest.push_back(0);
    heaviest.push_back(static_cast<int>(group.candidates.size()) - 1);
  }
  const coordinator::MapCost least = space.cost(space.decode(lightest));
  const coordinator::MapCost most = space.cost(space.decode(heaviest));
  check.least_bytes = least.bytes;
  check.least_bits = least.effective_bits;
  check.most_bytes = most.bytes;
  check.most_bits = most.effective_bits;
  check.baseline_bytes = space.cost(space.baseline()).bytes;
  count_fitting(space, check);
  return check;
}

}  // namespace kvsweep::cli
