#include "search/pareto/crowding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/rng.hpp"

namespace kvsweep::search {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
bool lower_index(int a, int b) {
  return a < b;
}

ThinnedFront thin(const std::vector<Objectives>& front, int keep) {
  return thin_front(front, keep, lower_index);
}

TEST(Crowding, WorkedExample) {
  const std::vector<Objectives> front = {{0, 10}, {1, 9}, {5, 5}, {10, 0}};
  const ThinnedFront all = thin(front, 4);
  EXPECT_EQ(all.kept, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(all.crowding[0], kInf);
  EXPECT_DOUBLE_EQ(all.crowding[1], 1.0);
  EXPECT_DOUBLE_EQ(all.crowding[2], 1.8);
  EXPECT_EQ(all.crowding[3], kInf);
  const ThinnedFront three = thin(front, 3);
  EXPECT_EQ(three.kept, (std::vector<int>{0, 2, 3}));
  EXPECT_DOUBLE_EQ(three.crowding[1], 2.0);
}

// Distances with all points at 0, 1, 2, 3, 4, 100 on a line. One initial computation gives 1, 2, 3
// the same smallest value and would drop all three; recomputed, the cluster keeps one of them.
// bytes 0 1 2 3 4 100, loss = -bytes: d(1) = d(2) = d(3) = 4/100, d(4) = 194/100.
// Drop 3 (highest index): d(2) = 6/100, d(1) = 4/100. Drop 1: d(2) = 8/100. Keeps 0 2 4 100.
TEST(Crowding, NeighboursAreRecomputedAfterEachRemoval) {
  const std::vector<Objectives> front = {{0, 0}, {1, -1}, {2, -2}, {3, -3}, {4, -4}, {100, -100}};
  EXPECT_EQ(thin(front, 4).kept, (std::vector<int>{0, 2, 4, 5}));
}

TEST(Crowding, OneInfiniteCopyPerVector) {
  const std::vector<Objectives> front = {{0, 4}, {0, 4}, {2, 2}, {4, 0}, {4, 0}, {4, 0}};
  const ThinnedFront all = thin(front, 6);
  EXPECT_EQ(std::count(all.crowding.begin(), all.crowding.end(), kInf), 2);
  // Of four, one copy of each end, the middle, and nothing else is certain; of three, exactly
  // these.
  const ThinnedFront three = thin(front, 3);
  EXPECT_EQ(front[three.kept[0]], (Objectives{0, 4}));
  EXPECT_EQ(front[three.kept[1]], (Objectives{2, 2}));
  EXPECT_EQ(front[three.kept[2]], (Objectives{4, 0}));
}

TEST(Crowding, NoRangeMeansNoDivision) {
  const std::vector<Objectives> copies(5, Objectives{3, 3});
  const ThinnedFront all = thin(copies, 5);
  EXPECT_EQ(all.crowding, (std::vector<double>{kInf, 0, 0, 0, 0}));
  EXPECT_EQ(thin(copies, 2).kept, (std::vector<int>{0, 1}));
}

TEST(Crowding, TiesGoToThePreferredOne) {
  const std::vector<Objectives> front = {
      {0, 3}, {1, 2}, {2, 1}, {3, 0}};  // the inner two are equal
  EXPECT_EQ(thin(front, 3).kept, (std::vector<int>{0, 1, 3}));
  const auto higher_index = [](int a, int b) { return a > b; };
  EXPECT_EQ(thin_front(front, 3, higher_index).kept, (std::vector<int>{0, 2, 3}));
}

TEST(Crowding, KeepingNothingOrMoreThanThereIs) {
  const std::vector<Objectives> front = {{0, 1}, {1, 0}};
  EXPECT_TRUE(thin(front, 0).kept.empty());
  EXPECT_TRUE(thin(front, -3).kept.empty());
  EXPECT_EQ(thin(front, 9).kept.size(), 2u);
  EXPECT_TRUE(thin({}, 3).kept.empty());
}

// The definition of the paper, objective by objective, for distinct values.
std::vector<double> by_definition(const std::vector<Objectives>& front, double bytes_range,
                                  double loss_range) {
  std::vector<double> distance(front.size(), 0);
  for (auto [member, range] :
       {std::pair{&Objectives::bytes, bytes_range}, std::pair{&Objectives::loss, loss_range}}) {
    std::vector<int> order(front.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return front[a].*member < front[b].*member; });
    distance[order.front()] = kInf;
    distance[order.back()] = kInf;
    for (size_t i = 1; i + 1 < order.size(); ++i) {
      distance[order[i]] += (front[order[i + 1]].*member - front[order[i - 1]].*member) / range;
    }
  }
  return distance;
}

TEST(Crowding, ThinningEqualsTheDefinitionRecomputedFromScratch) {
  Rng rng(3, "crowding");
  for (int round = 0; round < 100; ++round) {
    const size_t n = 3 + rng.below(15);
    std::vector<Objectives> front;
    double bytes = 0;
    double loss = 0;
    for (size_t i = 0; i < n; ++i) {
      front.push_back({bytes += 0.01 + rng.uniform(), loss -= 0.01 + rng.uniform()});
    }
    const double bytes_range = front.back().bytes - front.front().bytes;
    const double loss_range = front.front().loss - front.back().loss;
    std::vector<Objectives> rest = front;
    while (rest.size() > 2) {
      const std::vector<double> distance = by_definition(rest, bytes_range, loss_range);
      rest.erase(rest.begin() +
                 (std::min_element(distance.begin(), distance.end()) - distance.begin()));
      const ThinnedFront thinned = thin(front, static_cast<int>(rest.size()));
      std::vector<Objectives> kept;
      for (int index : thinned.kept) kept.push_back(front[index]);
      ASSERT_EQ(kept, rest);
      const std::vector<double> expected = by_definition(rest, bytes_range, loss_range);
      for (size_t i = 0; i < rest.size(); ++i) {
        if (std::isinf(expected[i])) {
          EXPECT_EQ(thinned.crowding[i], kInf);
        } else {
          EXPECT_NEAR(thinned.crowding[i], expected[i], 1e-12);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvsweep::search
