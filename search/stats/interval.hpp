// Confidence intervals of what a trial lost against the baseline on the same examples. All are 95
// %, two-sided, deterministic and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace kvsweep::search {

struct Interval {
  double low = 0;
  double high = 0;
};

// Of n examples that score 0 or 1, `lost` are right under the baseline only and `gained` under the
// map only: the interval of (lost - gained) / n. Score interval of Tango (Statistics in Medicine
// 17, 1998, 891-908): the differences that a score test of paired proportions does not reject; at 0
// that test is McNemar's. Unlike Wald's it has a width when nothing was lost: 0 of 100 gives about
// [-0.037, 0.037]. nullopt when n is 0. lost, gained >= 0 and lost + gained <= n.
std::optional<Interval> paired_interval(int64_t lost, int64_t gained, int64_t n);

// The one-sided upper bound at 95 % of the same difference, by the same score test. nullopt when n
// is 0.
std::optional<double> paired_upper_bound(int64_t lost, int64_t gained, int64_t n);

// That score test's statistic for the hypothesis that the difference is `delta`, standard normal
// under it and negative when the data lie below. n > 0; infinite where no spread is possible.
double paired_score(int64_t lost, int64_t gained, int64_t n, double delta);

// Of n examples `hits` have a property: the interval of the share (Wilson, JASA 22, 1927). nullopt
// when n is 0. 0 <= hits <= n.
std::optional<Interval> share_interval(int64_t hits, int64_t n);

// Interval of the mean of independent values by Student's t; nullopt for fewer than two, which say
// nothing about their spread.
std::optional<Interval> mean_interval(std::span<const double> values);

}  // namespace kvsweep::search
