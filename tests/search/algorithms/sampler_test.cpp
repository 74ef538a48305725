#include "search/algorithms/sampler.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "tests/search/support/problems.hpp"

namespace kvsweep::search {
namespace {

using testing::all_genomes;
using testing::space_of;

int sum(const Genome& genome) {
  return std::accumulate(genome.begin(), genome.end(), 0);
}

// Draws until the sampler gives up; every genome must be new and allowed.
std::set<Genome> draw_all(const Space& space, const HardLimit& limit) {
  History history;
  UnseenSampler sampler(space, limit, history);
  Rng rng(1, "sampler");
  std::set<Genome> drawn;
  while (auto genome = sampler.draw(rng)) {
    EXPECT_TRUE(space.contains(*genome));
    EXPECT_TRUE(is_allowed(limit, *genome));
    EXPECT_TRUE(drawn.insert(*genome).second);
    history.propose(*genome);
    if (drawn.size() > 5000) ADD_FAILURE() << "does not end";
  }
  return drawn;
}

TEST(UnseenSampler, DrawsEveryGenomeOfASmallSpaceOnce) {
  const Space space = space_of({5, 5, 5, 5});
  EXPECT_EQ(draw_all(space, {}).size(), 625u);
}

// A limit of no particular shape: 1 in 7 by a sum modulo 7.
TEST(UnseenSampler, IsExactUnderAnyLimitInASmallSpace) {
  const Space space = space_of({5, 4, 5, 4});
  const HardLimit odd = [](const Genome& g) {
    return (g[0] + 2 * g[1] + 3 * g[2] + g[3]) % 7 == 3;
  };
  std::set<Genome> expected;
  for (const Genome& genome : all_genomes(space)) {
    if (odd(genome)) expected.insert(genome);
  }
  EXPECT_EQ(draw_all(space, odd), expected);
  EXPECT_TRUE(draw_all(space, [](const Genome&) { return false; }).empty());
}

// 5^30 genomes, of which sum <= 2 allows 1 + 30 + 30 * 29 / 2 + 30 = 496.
TEST(UnseenSampler, IsExactUnderAFallingLimitInAHugeSpace) {
  const Space space = space_of(std::vector<int>(30, 5));
  EXPECT_EQ(draw_all(space, [](const Genome& g) { return sum(g) <= 2; }).size(), 496u);
  EXPECT_TRUE(draw_all(space, [](const Genome&) { return false; }).empty());
}

// 3 of 8 genomes are seen; 20,000 draws of the pool put 4,000 on each of the other 5, give or take
// 4 standard deviations (sqrt(20000 * 0.2 * 0.8) = 57).
TEST(UnseenPool, DrawsUniformlyFromWhatIsLeft) {
  const Space space = space_of({2, 2, 2});
  UnseenPool pool(space, {});
  for (const Genome& seen : {Genome{0, 0, 0}, Genome{0, 1, 1}, Genome{1, 1, 1}}) {
    pool.remove(seen);
    pool.remove(seen);  // no effect
  }
  Rng rng(9, "pool");
  std::map<Genome, int> counts;
  for (int i = 0; i < 20000; ++i) ++counts[*pool.draw(rng)];
  ASSERT_EQ(counts.size(), 5u);
  for (const auto& [genome, count] : counts) EXPECT_NEAR(count, 4000, 228);
  EXPECT_FALSE(counts.contains({0, 0, 0}));
}

TEST(LowerUntilAllowed, StopsAtTheFirstAllowedGenomeOrAtTheLightest) {
  Rng rng(2, "lower");
  Genome genome{4, 4, 4};
  EXPECT_TRUE(lower_until_allowed([](const Genome& g) { return sum(g) <= 5; }, genome, rng));
  EXPECT_EQ(sum(genome), 5);
  EXPECT_FALSE(lower_until_allowed([](const Genome&) { return false; }, genome, rng));
  EXPECT_EQ(sum(genome), 0);
}

}  // namespace
}  // namespace kvsweep::search
