#include "search/algorithms/evolution/survival.hpp"

#include <algorithm>
#include <utility>

#include "search/pareto/crowding.hpp"
#include "search/pareto/nondominated_sort.hpp"

namespace kvsweep::search {
namespace {

bool fewer_children(const Member& a, const Member& b, const ChildCount& children) {
  const int a_children = children.of(a.number);
  const int b_children = children.of(b.number);
  return a_children != b_children ? a_children < b_children : a.genome < b.genome;
}

// Moves what fits of one front into `kept`.
void keep_front(std::vector<Member>& feasible, const std::vector<int>& front, int rank,
                size_t capacity, const ChildCount& children, std::vector<Member>& kept) {
  std::vector<Objectives> objectives;
  for (int index : front) objectives.push_back(feasible[index].objectives);
  const Preferred preferred = [&](int a, int b) {
    return fewer_children(feasible[front[a]], feasible[front[b]], children);
  };
  const ThinnedFront thinned =
      thin_front(objectives, static_cast<int>(capacity - kept.size()), preferred);
  for (size_t i = 0; i < thinned.kept.size(); ++i) {
    Member& member = feasible[front[thinned.kept[i]]];
    member.rank = rank;
    member.crowding = thinned.crowding[i];
    kept.push_back(std::move(member));
  }
}

void keep_infeasible(std::vector<Member>& infeasible, int rank, size_t capacity,
                     const ChildCount& children, std::vector<Member>& kept) {
  std::sort(infeasible.begin(), infeasible.end(), [&](const Member& a, const Member& b) {
    return a.violation != b.violation ? a.violation < b.violation : fewer_children(a, b, children);
  });
  for (size_t i = 0; i < infeasible.size() && kept.size() < capacity; ++i) {
    if (i > 0 && infeasible[i].violation != kept.back().violation) ++rank;
    infeasible[i].rank = rank;
    infeasible[i].crowding = 0;
    kept.push_back(std::move(infeasible[i]));
  }
}

}  // namespace

std::vector<Member> survivors(std::vector<Member> members, int capacity,
                              const ChildCount& children) {
  std::vector<Member> feasible;
  std::vector<Member> infeasible;
  for (Member& member : members) {
    (member.feasible ? feasible : infeasible).push_back(std::move(member));
  }
  std::vector<Objectives> objectives;
  for (const Member& member : feasible) objectives.push_back(member.objectives);
  const Fronts fronts = nondominated_fronts(objectives);

  const auto limit = static_cast<size_t>(std::max(capacity, 0));
  std::vector<Member> kept;
  for (size_t rank = 0; rank < fronts.size() && kept.size() < limit; ++rank) {
    keep_front(feasible, fronts[rank], static_cast<int>(rank), limit, children, kept);
  }
  keep_infeasible(infeasible, static_cast<int>(fronts.size()), limit, children, kept);
  return kept;
}

}  // namespace kvsweep::search
