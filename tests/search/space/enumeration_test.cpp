#include "search/space/enumeration.hpp"

#include <gtest/gtest.h>

#include "tests/search/support/problems.hpp"

namespace kvsweep::search {
namespace {

TEST(Enumeration, RanksFollowTheGenomeOrder) {
  const Space space = testing::space_of({3, 5, 1, 2});
  const std::vector<Genome> genomes =
      testing::all_genomes(space);  // an odometer, last gene fastest
  ASSERT_EQ(genomes.size(), 30u);
  for (size_t i = 0; i < genomes.size(); ++i) {
    EXPECT_EQ(rank_of(space, genomes[i]), static_cast<int64_t>(i));
    EXPECT_EQ(genome_at(space, static_cast<int64_t>(i)), genomes[i]);
  }
}

TEST(Enumeration, HugeSpacesAreNotEnumerable) {
  EXPECT_TRUE(enumerable(testing::bits(20)));
  EXPECT_FALSE(enumerable(testing::bits(21)));
  EXPECT_FALSE(
      enumerable(testing::space_of(std::vector<int>(600, 16))));  // size() overflows to inf
}

}  // namespace
}  // namespace kvsweep::search
