#include "search/pareto/hypervolume.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/rng.hpp"
#include "tests/search/support/problems.hpp"

namespace kvsweep::search {
namespace {

using testing::Front;

// Inclusion-exclusion over all non-empty subsets: the volume common to a subset is the box below
// the reference whose corner is the worst value in each objective.
double by_inclusion_exclusion(const std::vector<Objectives>& points, const Objectives& reference) {
  double total = 0;
  for (uint32_t subset = 1; subset < (1u << points.size()); ++subset) {
    Objectives corner{-1e300, -1e300};
    int size = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      if ((subset >> i & 1) == 0) continue;
      corner.bytes = std::max(corner.bytes, points[i].bytes);
      corner.loss = std::max(corner.loss, points[i].loss);
      ++size;
    }
    const double box =
        std::max(0.0, reference.bytes - corner.bytes) * std::max(0.0, reference.loss - corner.loss);
    total += size % 2 == 1 ? box : -box;
  }
  return total;
}

std::vector<Objectives> random_points(Rng& rng, size_t n) {
  std::vector<Objectives> points;
  for (size_t i = 0; i < n; ++i) {
    points.push_back({static_cast<double>(rng.below(14)), static_cast<double>(rng.below(14))});
  }
  return points;
}

constexpr Objectives kReference{10, 10};  // some of the random points lie beyond it

TEST(Hypervolume, WorkedExample) {
  const std::vector<Objectives> points = {{2, 1}, {1, 3}};
  EXPECT_EQ(hypervolume(points, {4, 4}), 7);
}

TEST(Hypervolume, EqualsInclusionExclusion) {
  Rng rng(5, "hypervolume");
  for (int round = 0; round < 300; ++round) {
    const auto points = random_points(rng, rng.below(11));
    EXPECT_DOUBLE_EQ(hypervolume(points, kReference), by_inclusion_exclusion(points, kReference));
  }
}

TEST(Hypervolume, DoesNotDependOnTheOrder) {
  Rng rng(6, "hypervolume");
  for (int round = 0; round < 100; ++round) {
    auto points = random_points(rng, 12);
    const double before = hypervolume(points, kReference);
    for (size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[rng.below(i)]);
    EXPECT_EQ(hypervolume(points, kReference), before);
  }
}

TEST(Hypervolume, GrowsOnlyByPointsThatNothingDominates) {
  Rng rng(7, "hypervolume");
  for (int round = 0; round < 100; ++round) {
    std::vector<Objectives> points;
    double before = 0;
    for (const Objectives& f : random_points(rng, 15)) {
      const bool covered = std::any_of(points.begin(), points.end(), [&](const Objectives& p) {
        return p.bytes <= f.bytes && p.loss <= f.loss;
      });
      const bool inside = f.bytes < kReference.bytes && f.loss < kReference.loss;
      points.push_back(f);
      const double after = hypervolume(points, kReference);
      if (covered || !inside) {
        EXPECT_EQ(after, before);
      } else {
        EXPECT_GT(after, before);
      }
      before = after;
    }
  }
}

TEST(Hypervolume, LeavesOutWhatIsNotFiniteOrNotBelowTheReference) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Objectives> points = {{nan, 1},      {1, nan}, {-infinity, 1}, {1, -infinity},
                                          {infinity, 0}, {4, 0},   {0, 4},         {9, 9}};
  EXPECT_EQ(hypervolume(points, {4, 4}), 0);
  EXPECT_EQ(hypervolume({}, {4, 4}), 0);
}

double of_front(const Front& front, const Objectives& reference) {
  std::vector<Objectives> points;
  for (const auto& [bytes, loss] : front) points.push_back({bytes, loss});
  return hypervolume(points, reference);
}

// Figures of the acceptance problems: OneMinMax and LOTZ (n+1)(n+2)/2 = 231, COCZ 386 (n = 20) and
// 841 (n = 30) with reference (-1,-1), maximised, which is (1,1) here; ZDT5 641.728 at (32,22).
TEST(Hypervolume, OfTheAcceptanceFronts) {
  EXPECT_DOUBLE_EQ(of_front(testing::one_min_max(20).front, {1, 1}), 231);
  EXPECT_DOUBLE_EQ(of_front(testing::lotz(20).front, {1, 1}), 231);
  EXPECT_DOUBLE_EQ(of_front(testing::cocz(20).front, {1, 1}), 386);
  EXPECT_DOUBLE_EQ(of_front(testing::cocz(30).front, {1, 1}), 841);
  EXPECT_NEAR(of_front(testing::zdt5().front, {32, 22}), 641.728, 5e-4);
}

TEST(HypervolumeShare, OfTheBoxFromZero) {
  const std::vector<Objectives> half = {{0, 5}, {2, 5}};
  EXPECT_DOUBLE_EQ(hypervolume_share(half, {4, 10}), 0.5);
  const std::vector<Objectives> perfect = {{0, 0}};
  EXPECT_DOUBLE_EQ(hypervolume_share(perfect, {4, 10}), 1);
  const std::vector<Objectives> lucky = {{-3, -1}};  // better than the baseline by chance
  EXPECT_DOUBLE_EQ(hypervolume_share(lucky, {4, 10}), 1);
  EXPECT_EQ(hypervolume_share(perfect, {0, 10}), 0);
  EXPECT_EQ(hypervolume_share(perfect, {4, std::numeric_limits<double>::quiet_NaN()}), 0);
}

}  // namespace
}  // namespace kvsweep::search
