#include "search/pareto/nondominated_sort.hpp"

#include <gtest/gtest.h>

#include "core/rng.hpp"

namespace kvsweep::search {
namespace {

// Front number by definition: one more than the worst front of those that dominate the point.
template <typename Point, typename Dominates>
Fronts fronts_by_definition(const std::vector<Point>& points, const Dominates& dominates) {
  std::vector<int> rank(points.size(), 0);
  for (size_t round = 0; round < points.size(); ++round) {
    for (size_t i = 0; i < points.size(); ++i) {
      for (size_t j = 0; j < points.size(); ++j) {
        if (dominates(points[j], points[i])) rank[i] = std::max(rank[i], rank[j] + 1);
      }
    }
  }
  Fronts fronts;
  for (size_t i = 0; i < points.size(); ++i) {
    if (static_cast<size_t>(rank[i]) >= fronts.size()) fronts.resize(rank[i] + 1);
    fronts[rank[i]].push_back(static_cast<int>(i));
  }
  return fronts;
}

bool dominates3(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    if (a[i] < b[i]) better = true;
  }
  return better;
}

TEST(NondominatedSort, WorkedExample) {
  const std::vector<Objectives> points = {{1, 4}, {2, 2}, {3, 3}, {4, 1}, {4, 4}};
  EXPECT_EQ(nondominated_fronts(points), (Fronts{{0, 1, 3}, {2}, {4}}));
}

TEST(NondominatedSort, EmptyAndSingle) {
  EXPECT_TRUE(nondominated_fronts(std::vector<Objectives>{}).empty());
  EXPECT_EQ(nondominated_fronts(std::vector<Objectives>{{1, 1}}), (Fronts{{0}}));
}

TEST(NondominatedSort, CopiesShareAFront) {
  const std::vector<Objectives> points = {{2, 2}, {1, 1}, {2, 2}, {1, 1}, {1, 2}};
  EXPECT_EQ(nondominated_fronts(points), (Fronts{{1, 3}, {4}, {0, 2}}));
}

// Few distinct values, so that ties in one or both objectives are common.
TEST(NondominatedSort, BothFormsEqualTheDefinition) {
  Rng rng(1, "sort");
  for (int round = 0; round < 300; ++round) {
    const int n = static_cast<int>(rng.between(0, 24));
    const int values = static_cast<int>(rng.between(1, 12));
    std::vector<Objectives> points;
    std::vector<std::vector<double>> vectors;
    for (int i = 0; i < n; ++i) {
      points.push_back(
          {static_cast<double>(rng.below(values)), static_cast<double>(rng.below(values))});
      vectors.push_back({points.back().bytes, points.back().loss});
    }
    const Fronts expected = fronts_by_definition(points, dominates);
    EXPECT_EQ(nondominated_fronts(points), expected);
    EXPECT_EQ(nondominated_fronts(vectors), expected);
  }
}

TEST(NondominatedSort, ThreeObjectivesEqualTheDefinition) {
  Rng rng(2, "sort");
  for (int round = 0; round < 100; ++round) {
    std::vector<std::vector<double>> vectors(rng.below(24));
    for (auto& v : vectors) {
      for (int i = 0; i < 3; ++i) v.push_back(static_cast<double>(rng.below(5)));
    }
    EXPECT_EQ(nondominated_fronts(vectors), fronts_by_definition(vectors, dominates3));
  }
}

TEST(NondominatedSort, LengthsMustAgree) {
  const std::vector<std::vector<double>> uneven = {{1, 2}, {1, 2, 3}};
  EXPECT_THROW((void)nondominated_fronts(uneven), std::invalid_argument);
}

}  // namespace
}  // namespace kvsweep::search
