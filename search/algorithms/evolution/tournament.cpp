#include "search/algorithms/evolution/tournament.hpp"

namespace kvsweep::search {

bool beats(const Member& a, const Member& b, const ChildCount& children) {
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.crowding != b.crowding) return a.crowding > b.crowding;
  const int a_children = children.of(a.number);
  const int b_children = children.of(b.number);
  if (a_children != b_children) return a_children < b_children;
  return a.genome < b.genome;
}

std::optional<size_t> tournament(std::span<const Member> members, const ChildCount& children,
                                 std::optional<size_t> excluded, Rng& rng) {
  const size_t eligible = members.size() - (excluded ? 1 : 0);
  if (eligible == 0) return std::nullopt;
  // Index among the eligible -> index among all.
  const auto at = [&](size_t i) { return excluded && i >= *excluded ? i + 1 : i; };
  if (eligible == 1) return at(0);
  const size_t first = rng.below(eligible);
  size_t second = rng.below(eligible - 1);
  if (second >= first) ++second;
  return beats(members[at(first)], members[at(second)], children) ? at(first) : at(second);
}

}  // namespace kvsweep::search
