#include "search/stats/interval.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace kvsweep::search {
namespace {

constexpr double kTail = 0.025;
constexpr double kZ = 1.959963984540054;           // the normal quantile of 1 - kTail
constexpr double kOneSidedZ = 1.6448536269514722;  // and of 0.95

// Tango's score statistic of the hypothesis that the difference of the two shares is `delta`. It
// falls from positive to negative as delta grows. q is the maximum-likelihood share of `gained`
// under the hypothesis: the positive root of a q^2 + b q + c = 0.
double score(double lost, double gained, double n, double delta) {
  const double a = 2 * n;
  const double b = -lost - gained + (2 * n - lost + gained) * delta;
  const double c = -gained * delta * (1 - delta);
  const double q = (std::sqrt(std::max(0.0, b * b - 4 * a * c)) - b) / (2 * a);
  const double variance = n * (2 * q + delta * (1 - delta));
  const double distance = lost - gained - n * delta;
  if (variance <= 0) return distance == 0 ? 0 : std::copysign(INFINITY, distance);
  return distance / std::sqrt(variance);
}

// Where the falling statistic passes `level`.
double crossing(double lost, double gained, double n, double level) {
  double low = -1;
  double high = 1;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (score(lost, gained, n, middle) > level ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

std::optional<Interval> paired_interval(int64_t lost, int64_t gained, int64_t n) {
  if (n == 0) return std::nullopt;
  const auto l = static_cast<double>(lost);
  const auto g = static_cast<double>(gained);
  const auto count = static_cast<double>(n);
  return Interval{crossing(l, g, count, kZ), crossing(l, g, count, -kZ)};
}

std::optional<double> paired_upper_bound(int64_t lost, int64_t gained, int64_t n) {
  if (n == 0) return std::nullopt;
  return crossing(static_cast<double>(lost), static_cast<double>(gained), static_cast<double>(n),
                  -kOneSidedZ);
}

double paired_score(int64_t lost, int64_t gained, int64_t n, double delta) {
  return score(static_cast<double>(lost), static_cast<double>(gained), static_cast<double>(n),
               delta);
}

std::optional<Interval> share_interval(int64_t hits, int64_t n) {
  if (n == 0) return std::nullopt;
  const auto count = static_cast<double>(n);
  const double share = static_cast<double>(hits) / count;
  const double scale = 1 + kZ * kZ / count;
  const double middle = (share + kZ * kZ / (2 * count)) / scale;
  const double half =
      kZ / scale * std::sqrt(share * (1 - share) / count + kZ * kZ / (4 * count * count));
  return Interval{std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::optional<Interval> mean_interval(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (n - 1) / n);
  const boost::math::students_t distribution(n - 1);
  const double half = boost::math::quantile(boost::math::complement(distribution, kTail)) * error;
  return Interval{mean - half, mean + half};
}

}  // namespace kvsweep::search
