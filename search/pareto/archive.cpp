#include "search/pareto/archive.hpp"

#include <algorithm>
#include <iterator>

namespace kvsweep::search {
namespace {

bool add_genome(ArchivedVector& vector, const ArchivedGenome& genome) {
  const bool known =
      std::any_of(vector.genomes.begin(), vector.genomes.end(),
                  [&](const ArchivedGenome& g) { return g.genome == genome.genome; });
  if (known) return true;
  if (vector.genomes.size() >= Archive::kGenomesPerVector) return false;
  vector.genomes.push_back(genome);
  return true;
}

}  // namespace

bool Archive::insert(const Objectives& objectives, const ArchivedGenome& genome) {
  if (!finite(objectives)) return false;
  // The heaviest vector that is no heavier has the lowest loss among those: only it can dominate.
  const auto above = by_bytes_.upper_bound(objectives.bytes);
  if (above != by_bytes_.begin()) {
    ArchivedVector& rival = std::prev(above)->second;
    if (rival.objectives == objectives) return add_genome(rival, genome);
    if (dominates(rival.objectives, objectives)) return false;
  }
  auto doomed = by_bytes_.lower_bound(objectives.bytes);
  while (doomed != by_bytes_.end() && dominates(objectives, doomed->second.objectives)) {
    doomed = by_bytes_.erase(doomed);
  }
  by_bytes_[objectives.bytes] = {objectives, {genome}};
  return true;
}

std::vector<Objectives> Archive::front() const {
  std::vector<Objectives> front;
  front.reserve(by_bytes_.size());
  for (const auto& [bytes, vector] : by_bytes_) front.push_back(vector.objectives);
  return front;
}

}  // namespace kvsweep::search
