#include "search/algorithms/evolution/population.hpp"

#include <unordered_set>
#include <utility>

#include "search/algorithms/evolution/survival.hpp"

namespace kvsweep::search {

void Population::tell(const Told& told, const std::vector<int64_t>& parents) {
  for (int64_t parent : parents) children_.add(parent);
  if (told.outcome == Outcome::failed) return;
  const bool feasible = told.outcome == Outcome::feasible;
  if (feasible) archive_.insert(told.objectives, {told.number, told.genome});
  members_.push_back({told.number, told.genome, feasible, told.objectives, told.violation});
  readmit_one();
  members_ = survivors(std::move(members_), capacity_, children_);
}

void Population::readmit_one() {
  const auto& vectors = archive_.vectors();
  std::unordered_set<double> present;  // bytes of the archive's vectors that a member has
  for (const Member& member : members_) {
    if (!member.feasible) continue;
    const auto found = vectors.find(member.objectives.bytes);
    if (found != vectors.end() && found->second.objectives == member.objectives) {
      present.insert(found->first);
    }
  }
  if (present.size() == vectors.size()) return;
  auto at = vectors.upper_bound(readmitted_bytes_);
  if (at == vectors.end()) at = vectors.begin();
  while (present.contains(at->first)) {
    if (++at == vectors.end()) at = vectors.begin();
  }
  readmitted_bytes_ = at->first;
  const ArchivedGenome& lost = at->second.genomes.front();
  members_.push_back({lost.number, lost.genome, true, at->second.objectives, 0});
}

}  // namespace kvsweep::search
