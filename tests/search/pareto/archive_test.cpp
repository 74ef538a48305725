#include "search/pareto/archive.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/rng.hpp"
#include "tests/search/support/problems.hpp"

namespace kvsweep::search {
namespace {

TEST(Archive, WorkedExample) {
  Archive archive;
  EXPECT_TRUE(archive.insert({2, 2}, {0, {0}}));
  EXPECT_TRUE(archive.insert({1, 3}, {1, {1}}));
  EXPECT_FALSE(archive.insert({3, 3}, {2, {2}}));
  EXPECT_TRUE(archive.insert({2, 1}, {3, {3}}));
  EXPECT_EQ(archive.front(), (std::vector<Objectives>{{1, 3}, {2, 1}}));
}

TEST(Archive, OnePointCanRemoveMany) {
  Archive archive;
  for (int i = 0; i < 10; ++i) archive.insert({i * 1.0, 10.0 - i}, {i, {i}});
  EXPECT_TRUE(archive.insert({3, 0}, {99, {99}}));
  EXPECT_EQ(archive.front(), (std::vector<Objectives>{{0, 10}, {1, 9}, {2, 8}, {3, 0}}));
}

TEST(Archive, HoldsEightGenomesPerVectorAndNoGenomeTwice) {
  Archive archive;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(archive.insert({1, 1}, {i, {i}}), i < 8);
    EXPECT_EQ(archive.insert({1, 1}, {100 + i, {i}}), i < 8);  // the same genome again
  }
  const std::vector<ArchivedGenome>& genomes = archive.vectors().at(1).genomes;
  ASSERT_EQ(genomes.size(), 8u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(genomes[i].number, i);
    EXPECT_EQ(genomes[i].genome, Genome{i});
  }
}

TEST(Archive, RefusesNonFiniteVectors) {
  Archive archive;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Objectives& f : {Objectives{nan, 1}, Objectives{1, nan}, Objectives{-infinity, 1}}) {
    EXPECT_FALSE(archive.insert(f, {0, {0}}));
  }
  EXPECT_TRUE(archive.empty());
}

TEST(Archive, EqualsTheFrontByDefinitionAfterEveryInsertion) {
  Rng rng(4, "archive");
  for (int round = 0; round < 60; ++round) {
    Archive archive;
    std::vector<Objectives> points;
    const uint64_t values = 2 + rng.below(20);
    for (int i = 0; i < 40; ++i) {
      points.push_back(
          {static_cast<double>(rng.below(values)), static_cast<double>(rng.below(values))});
      archive.insert(points.back(), {i, {i}});
      testing::Front front;
      for (const Objectives& f : archive.front()) front.insert({f.bytes, f.loss});
      ASSERT_EQ(front, testing::front_by_definition(points));
    }
  }
}

}  // namespace
}  // namespace kvsweep::search
