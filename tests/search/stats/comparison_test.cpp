#include "search/stats/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/json.hpp"

namespace kvsweep::search {
namespace {

using Values = std::vector<double>;

Json golden() {
  return read_json_file(KVSWEEP_SOURCE_DIR "/tests/search/stats/comparisons.json").value();
}

struct Pair {
  Values first;
  Values second;
  PairedScores scores() const { return {first, second}; }
};

// Of n examples, `lost` right under the first only and `gained` under the second only.
Pair binary_pair(int64_t lost, int64_t gained, int64_t n) {
  Pair pair;
  for (int64_t i = 0; i < n; ++i) {
    const bool only_first = i < lost;
    const bool only_second = !only_first && i < lost + gained;
    const bool both = i % 2 == 0;
    pair.first.push_back(only_first || (!only_second && both) ? 1 : 0);
    pair.second.push_back(only_second || (!only_first && both) ? 1 : 0);
  }
  return pair;
}

TEST(Comparison, McNemarAsScipysBinomialTest) {
  const Json rows = golden()["mcnemar"];
  ASSERT_GT(rows.size(), 5u);
  for (const Json& row : rows) {
    EXPECT_NEAR(mcnemar_exact(row[0], row[1]), row[2].get<double>(), 1e-12) << row;
  }
}

TEST(Comparison, BinaryScores) {
  const Json rows = golden()["binary"];
  for (const Json& row : rows) {
    const int64_t lost = row["lost"];
    const int64_t gained = row["gained"];
    const int64_t n = row["n"];
    const Pair pair = binary_pair(lost, gained, n);
    const PairedComparison result = compare_paired(pair.scores());
    EXPECT_EQ(result.method, PairedMethod::mcnemar);
    EXPECT_EQ(result.n, n);
    EXPECT_EQ(result.lost, lost);
    EXPECT_EQ(result.gained, gained);
    EXPECT_NEAR(result.loss, static_cast<double>(lost - gained) / static_cast<double>(n), 1e-12);
    EXPECT_NEAR(result.first - result.second, result.loss, 1e-12);
    EXPECT_EQ(result.interval->low, paired_interval(lost, gained, n)->low);
    EXPECT_EQ(*result.p_value, mcnemar_exact(lost, gained));
    EXPECT_NEAR(*loss_bound(pair.scores()), row["bound"].get<double>(), 1e-6);
    for (const Json& claim : row["p"]) {
      EXPECT_NEAR(*non_inferiority_p(pair.scores(), claim[0]), claim[1].get<double>(), 1e-6) << row;
    }
  }
}

TEST(Comparison, RealScoresAsScipysPairedT) {
  const Json rows = golden()["paired"];
  for (const Json& row : rows) {
    const Pair pair{row["first"], row["second"]};
    const PairedComparison result = compare_paired(pair.scores());
    EXPECT_EQ(result.method, PairedMethod::paired_t);
    EXPECT_NEAR(*result.p_value, row["p"].get<double>(), 1e-9);
    EXPECT_NEAR(result.interval->low, row["interval"][0].get<double>(), 1e-9);
    EXPECT_NEAR(result.interval->high, row["interval"][1].get<double>(), 1e-9);
    EXPECT_NEAR(*result.standard_error, row["standard_error"].get<double>(), 1e-12);
    EXPECT_NEAR(*loss_bound(pair.scores()), row["bound"].get<double>(), 1e-9);
    for (const Json& claim : row["non_inferiority"]) {
      EXPECT_NEAR(*non_inferiority_p(pair.scores(), claim[0]), claim[1].get<double>(), 1e-9);
    }
  }
}

TEST(Comparison, BootstrapNearScipysAndTheSameForOneSeed) {
  const Json row = golden()["bootstrap"];
  const Values values = row["values"];
  const Interval interval = *bootstrap_interval(values, 1);
  const double width = row["interval"][1].get<double>() - row["interval"][0].get<double>();
  // The 2.5 % quantile of 10,000 draws has a standard error near 0.01 widths.
  EXPECT_NEAR(interval.low, row["interval"][0].get<double>(), 0.05 * width);
  EXPECT_NEAR(interval.high, row["interval"][1].get<double>(), 0.05 * width);
  EXPECT_EQ(bootstrap_interval(values, 1)->low, interval.low);
  EXPECT_NE(bootstrap_interval(values, 2)->low, interval.low);
}

TEST(Comparison, HolmByTheDefinition) {
  const Json rows = golden()["holm"];
  for (const Json& row : rows) {
    const Values adjusted = holm(row["p"].get<Values>());
    const Values expected = row["adjusted"];
    ASSERT_EQ(adjusted.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << row;
  }
  EXPECT_TRUE(holm({}).empty());
}

// The claim "loss <= delta at 95 %" is one thing, said by a bound or by a p-value.
TEST(Comparison, BoundAndPValueAgree) {
  const Pair real{{0.9, 0.5, 0.7, 0.8, 0.2}, {0.8, 0.5, 0.75, 0.6, 0.25}};
  for (const Pair& pair : {binary_pair(7, 2, 50), binary_pair(0, 0, 30), real}) {
    const double bound = *loss_bound(pair.scores());
    EXPECT_NEAR(*non_inferiority_p(pair.scores(), bound), 0.05, 1e-6);
    EXPECT_LT(*non_inferiority_p(pair.scores(), bound + 0.01), 0.05);
    EXPECT_GT(*non_inferiority_p(pair.scores(), bound - 0.01), 0.05);
    EXPECT_LT(bound, compare_paired(pair.scores()).interval->high);
  }
}

TEST(Comparison, LittleDataSaysLittle) {
  const PairedComparison nothing = compare_paired({});
  EXPECT_EQ(nothing.n, 0);
  EXPECT_FALSE(nothing.interval || nothing.p_value || nothing.standard_error);
  EXPECT_FALSE(loss_bound({}) || non_inferiority_p({}, 0.1));
  EXPECT_FALSE(bootstrap_interval({}, 1));
  const Pair one{{0.5}, {0.25}};
  const PairedComparison single = compare_paired(one.scores());
  EXPECT_EQ(single.loss, 0.25);
  EXPECT_EQ(single.lost, 1);
  EXPECT_FALSE(single.interval || single.p_value || loss_bound(one.scores()));
  const Pair equal{{0.5, 0.25}, {0.5, 0.25}};
  EXPECT_EQ(*compare_paired(equal.scores()).p_value, 1);
  EXPECT_EQ(*loss_bound(equal.scores()), 0);
  const Pair shifted{{0.75, 0.5}, {0.5, 0.25}};  // no spread: no t
  EXPECT_FALSE(compare_paired(shifted.scores()).p_value);
}

}  // namespace
}  // namespace kvsweep::search
