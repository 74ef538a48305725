#include "search/stats/interval.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/json.hpp"

namespace kvsweep::search {
namespace {

Json golden() {
  return read_json_file(KVSWEEP_SOURCE_DIR "/tests/search/stats/intervals.json").value();
}

TEST(Interval, PairedAsTheDefinitionGivesIt) {
  const Json rows = golden()["paired"];
  for (const Json& row : rows) {
    const auto interval = paired_interval(row[0], row[1], row[2]);
    ASSERT_TRUE(interval.has_value());
    EXPECT_NEAR(interval->low, row[3].get<double>(), 1e-6) << row;
    EXPECT_NEAR(interval->high, row[4].get<double>(), 1e-6) << row;
  }
}

TEST(Interval, ShareAsScipy) {
  const Json rows = golden()["share"];
  for (const Json& row : rows) {
    const auto interval = share_interval(row[0], row[1]);
    ASSERT_TRUE(interval.has_value());
    EXPECT_NEAR(interval->low, row[2].get<double>(), 1e-9) << row;
    EXPECT_NEAR(interval->high, row[3].get<double>(), 1e-9) << row;
  }
}

TEST(Interval, MeanAsScipy) {
  const Json rows = golden()["mean"];
  for (const Json& row : rows) {
    const auto interval = mean_interval(row["values"].get<std::vector<double>>());
    ASSERT_TRUE(interval.has_value());
    EXPECT_NEAR(interval->low, row["interval"][0].get<double>(), 1e-9);
    EXPECT_NEAR(interval->high, row["interval"][1].get<double>(), 1e-9);
  }
}

TEST(Interval, PairedIsSymmetricContainsTheDifferenceAndHasAWidth) {
  for (int64_t n : {1, 2, 7, 100}) {
    for (int64_t lost = 0; lost <= n; ++lost) {
      for (int64_t gained = 0; lost + gained <= n; ++gained) {
        const auto a = *paired_interval(lost, gained, n);
        const auto b = *paired_interval(gained, lost, n);
        EXPECT_NEAR(a.low, -b.high, 1e-9);
        const double difference = static_cast<double>(lost - gained) / static_cast<double>(n);
        EXPECT_LE(a.low, difference + 1e-12);
        EXPECT_GE(a.high, difference - 1e-12);
        EXPECT_GT(a.high - a.low, 0.01);
        EXPECT_GE(a.low, -1);
        EXPECT_LE(a.high, 1);
      }
    }
  }
}

TEST(Interval, NothingMeasuredNothingSaid) {
  EXPECT_FALSE(paired_interval(0, 0, 0).has_value());
  EXPECT_FALSE(share_interval(0, 0).has_value());
  EXPECT_FALSE(mean_interval({}).has_value());
  EXPECT_FALSE(mean_interval(std::vector<double>{0.5}).has_value());
  const auto constant = *mean_interval(std::vector<double>{0.5, 0.5, 0.5});
  EXPECT_EQ(constant.low, constant.high);
}

}  // namespace
}  // namespace kvsweep::search
