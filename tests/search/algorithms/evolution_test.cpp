// The operators of NSGA-II, one by one.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "search/algorithms/evolution/crossover.hpp"
#include "search/algorithms/evolution/mutation.hpp"
#include "search/algorithms/evolution/neighbour.hpp"
#include "search/algorithms/evolution/population.hpp"
#include "search/algorithms/evolution/survival.hpp"
#include "search/algorithms/evolution/tournament.hpp"
#include "tests/search/support/problems.hpp"

namespace kvsweep::search {
namespace {

using testing::space_of;
constexpr double kInf = std::numeric_limits<double>::infinity();

// Within 4.5 standard deviations of a binomial share.
void expect_share(int count, int n, double p) {
  EXPECT_NEAR(static_cast<double>(count) / n, p, 4.5 * std::sqrt(p * (1 - p) / n));
}

TEST(Crossover, SwapsEachGeneWithItsProbability) {
  Rng rng(1, "crossover");
  const int n = 20000;
  std::vector<int> swapped(4, 0);
  int both = 0;
  for (int i = 0; i < n; ++i) {
    const Genome child = uniform_crossover({0, 0, 0, 0}, {1, 1, 1, 1}, 0.3, rng);
    for (size_t g = 0; g < 4; ++g) swapped[g] += child[g];
    both += child[0] * child[1];
  }
  for (int count : swapped) expect_share(count, n, 0.3);
  expect_share(both, n, 0.09);  // genes are independent
}

// Value 2 of 0..4 with step 0.7: 1 and 3 get 0.7/2 + 0.3/4 = 0.425 each, 0 and 4 get 0.075 each.
// Value 0: 1 gets 0.7 + 0.075 = 0.775, each of 2, 3, 4 gets 0.075. The current value never.
TEST(Mutation, StepsOrRedrawsButNeverStays) {
  const Space space = space_of({5});
  Rng rng(2, "mutation");
  const int n = 20000;
  std::map<int, int> inner;
  std::map<int, int> edge;
  for (int i = 0; i < n; ++i) {
    ++inner[mutated_gene(space, {2}, 0, 0.7, rng)];
    ++edge[mutated_gene(space, {0}, 0, 0.7, rng)];
  }
  EXPECT_EQ(inner.count(2), 0u);
  for (auto [value, share] : {std::pair{0, 0.075}, {1, 0.425}, {3, 0.425}, {4, 0.075}}) {
    expect_share(inner[value], n, share);
  }
  EXPECT_EQ(edge.count(0), 0u);
  for (auto [value, share] : {std::pair{1, 0.775}, {2, 0.075}, {3, 0.075}, {4, 0.075}}) {
    expect_share(edge[value], n, share);
  }
}

// Three of five groups have a choice: each mutates with probability 1/3.
TEST(Mutation, RateIsOneGeneInTheMeanAndSingleCandidatesStay) {
  const Space space = space_of({3, 1, 2, 1, 5});
  Rng rng(3, "mutation");
  const int n = 20000;
  std::vector<int> changed(5, 0);
  for (int i = 0; i < n; ++i) {
    const Genome child = mutated(space, {1, 0, 1, 0, 2}, 0.7, rng);
    ASSERT_TRUE(space.contains(child));
    const Genome before{1, 0, 1, 0, 2};
    for (size_t g = 0; g < 5; ++g) changed[g] += child[g] != before[g];
    ASSERT_NE(mutated_for_certain(space, before, 0.7, rng), before);
  }
  EXPECT_EQ(changed[1] + changed[3], 0);
  for (int gene : {0, 2, 4}) expect_share(changed[gene], n, 1.0 / 3);
  const Space fixed = space_of({1, 1});
  EXPECT_EQ(mutated_for_certain(fixed, {0, 0}, 0.7, rng), (Genome{0, 0}));
}

TEST(Mutation, OneStepNeighbours) {
  const Space space = space_of({3, 1, 2});
  EXPECT_EQ(one_step_neighbours(space, {1, 0, 0}),
            (std::vector<Genome>{{0, 0, 0}, {2, 0, 0}, {1, 0, 1}}));
}

Member member(int64_t number, int rank, double crowding) {
  Member m;
  m.number = number;
  m.genome = {static_cast<int>(number)};
  m.rank = rank;
  m.crowding = crowding;
  return m;
}

TEST(Tournament, RankThenCrowdingThenChildrenThenGenome) {
  ChildCount children;
  children.add(1);
  EXPECT_TRUE(beats(member(1, 0, 0.1), member(2, 1, 9), children));
  EXPECT_TRUE(beats(member(1, 0, 9), member(2, 0, 0.1), children));
  EXPECT_TRUE(beats(member(2, 0, 1), member(1, 0, 1), children));  // 1 has a child
  EXPECT_TRUE(beats(member(2, 0, 1), member(3, 0, 1), children));  // genome order
  EXPECT_FALSE(beats(member(2, 0, 1), member(2, 0, 1), children));
}

// Of n members drawn in distinct pairs the best wins whenever it is drawn, 2/n of the time, and the
// worst never does.
TEST(Tournament, DrawsDistinctPairs) {
  std::vector<Member> members;
  for (int i = 0; i < 5; ++i) members.push_back(member(i, i, 0));
  Rng rng(4, "tournament");
  const int n = 20000;
  std::map<size_t, int> wins;
  std::map<size_t, int> without_best;
  for (int i = 0; i < n; ++i) {
    ++wins[*tournament(members, {}, std::nullopt, rng)];
    ++without_best[*tournament(members, {}, 0, rng)];
  }
  expect_share(wins[0], n, 0.4);
  EXPECT_EQ(wins.count(4), 0u);
  EXPECT_EQ(without_best.count(0), 0u);
  expect_share(without_best[1], n, 0.5);
  EXPECT_EQ(without_best.count(4), 0u);
}

TEST(Tournament, FewMembers) {
  Rng rng(5, "tournament");
  const std::vector<Member> one = {member(7, 0, 0)};
  EXPECT_EQ(tournament(one, {}, std::nullopt, rng), std::optional<size_t>(0));
  EXPECT_EQ(tournament(one, {}, 0, rng), std::nullopt);
  EXPECT_EQ(tournament({}, {}, std::nullopt, rng), std::nullopt);
}

Member feasible(int64_t number, double bytes, double loss) {
  Member m = member(number, -1, -1);
  m.objectives = {bytes, loss};
  return m;
}

Member infeasible(int64_t number, double violation) {
  Member m = member(number, -1, -1);
  m.feasible = false;
  m.violation = violation;
  return m;
}

std::vector<int64_t> numbers(const std::vector<Member>& members) {
  std::vector<int64_t> result;
  for (const Member& m : members) result.push_back(m.number);
  return result;
}

TEST(Survival, WorkedExample) {
  const auto kept = survivors({feasible(0, 3, 3), feasible(1, 1, 3), infeasible(2, 0.1),
                               feasible(3, 2, 2), feasible(4, 3, 1)},
                              3, {});
  EXPECT_EQ(numbers(kept), (std::vector<int64_t>{1, 3, 4}));
  for (const Member& m : kept) EXPECT_EQ(m.rank, 0);
  EXPECT_EQ(kept[0].crowding, kInf);
  EXPECT_DOUBLE_EQ(kept[1].crowding, 2);
  EXPECT_EQ(kept[2].crowding, kInf);
}

// A dominated feasible member still precedes every infeasible one; those follow by violation, equal
// violations sharing a rank; infinity (a NaN that was cleaned) comes last.
TEST(Survival, FeasibleFirstThenViolation) {
  const std::vector<Member> all = {infeasible(0, kInf), infeasible(1, 0.2), feasible(2, 9, 9),
                                   infeasible(3, 0.1),  feasible(4, 1, 1),  infeasible(5, 0.2)};
  const auto kept = survivors(all, 9, {});
  EXPECT_EQ(numbers(kept), (std::vector<int64_t>{4, 2, 3, 1, 5, 0}));
  std::vector<int> ranks;
  for (const Member& m : kept) ranks.push_back(m.rank);
  EXPECT_EQ(ranks, (std::vector<int>{0, 1, 2, 3, 3, 4}));
  EXPECT_EQ(numbers(survivors(all, 4, {})), (std::vector<int64_t>{4, 2, 3, 1}));
}

// The inner two of an even line tie; the one with a child goes.
TEST(Survival, TiesFallOnTheOneWithMoreChildren) {
  const std::vector<Member> line = {feasible(0, 0, 3), feasible(1, 1, 2), feasible(2, 2, 1),
                                    feasible(3, 3, 0)};
  EXPECT_EQ(numbers(survivors(line, 3, {})), (std::vector<int64_t>{0, 1, 3}));
  ChildCount children;
  children.add(1);
  EXPECT_EQ(numbers(survivors(line, 3, children)), (std::vector<int64_t>{0, 2, 3}));
}

Told told(int64_t number, double bytes, double loss) {
  return {number, {static_cast<int>(number)}, Outcome::feasible, {bytes, loss}, 0};
}

// Three places. Of (0,10) (5,5) (9,0.5) (10,0) the third is the most crowded, 5/10 + 5/10 = 1
// against 9/10 + 9.5/10, and leaves. Then (0,1) dominates (0,10) and (5,5): the front is (0,1)
// (9,0.5) (10,0), and its middle can come from nowhere but the archive.
TEST(Population, ReadmitsAFrontGenomeLostByTruncation) {
  Population population(3);
  for (const Told& t : {told(0, 0, 10), told(1, 10, 0), told(2, 5, 5), told(3, 9, 0.5)}) {
    population.tell(t, {});
  }
  EXPECT_EQ(numbers(population.members()), (std::vector<int64_t>{0, 1, 2}));  // 3 is crowded out
  population.tell(told(4, 0, 1), {});
  std::vector<int64_t> members = numbers(population.members());
  std::sort(members.begin(), members.end());
  EXPECT_EQ(members, (std::vector<int64_t>{1, 3, 4}));
  for (const Member& m : population.members()) EXPECT_EQ(m.rank, 0);
}

TEST(Population, FailedResultsOnlyCountForTheirParents) {
  Population population(3);
  Told failure = told(4, -1, -1);
  failure.outcome = Outcome::failed;
  population.tell(failure, {1});
  EXPECT_TRUE(population.members().empty());
  EXPECT_TRUE(population.archive().empty());
  // An even line of four: of the two inner ones, 1 has the child.
  for (int i = 0; i < 4; ++i) population.tell(told(i, i, 3 - i), {});
  EXPECT_EQ(numbers(population.members()), (std::vector<int64_t>{0, 2, 3}));
}

TEST(Population, InfeasibleResultsStayOutOfTheArchive) {
  Population population(3);
  Told beyond = told(0, 0, 0);
  beyond.outcome = Outcome::infeasible;
  beyond.violation = 0.5;
  population.tell(beyond, {});
  population.tell(told(1, 5, 5), {});
  EXPECT_EQ(population.archive().front(), (std::vector<Objectives>{{5, 5}}));
  EXPECT_EQ(numbers(population.members()), (std::vector<int64_t>{1, 0}));
}

TEST(Neighbour, FindsTheLastUnseenOneAndThenNone) {
  const Space space = space_of({3, 3});
  Archive archive;
  archive.insert({1, 2}, {5, {1, 1}});
  archive.insert({2, 1}, {6, {2, 2}});
  History history;
  for (const Genome& seen : {Genome{1, 1}, Genome{2, 2}, Genome{0, 1}, Genome{1, 0}}) {
    history.propose(seen);
  }
  const HardLimit limit = [](const Genome& g) { return g != Genome{2, 1}; };
  Rng rng(6, "neighbour");
  const auto found = unseen_neighbour(space, archive, history, limit, rng);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->genome, (Genome{1, 2}));  // of both members; {2,1} is not allowed
  EXPECT_TRUE(found->parent == 5 || found->parent == 6);
  history.propose(found->genome);
  EXPECT_FALSE(unseen_neighbour(space, archive, history, limit, rng).has_value());
  EXPECT_FALSE(unseen_neighbour(space, Archive{}, history, limit, rng).has_value());
}

}  // namespace
}  // namespace kvsweep::search
