#include "search/stats/comparison.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

#include "core/rng.hpp"

namespace kvsweep::search {
namespace {

constexpr double kConfidence = 0.95;

bool binary(std::span<const double> scores) {
  return std::all_of(scores.begin(), scores.end(), [](double s) { return s == 0 || s == 1; });
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<double> losses_of(const PairedScores& scores) {
  std::vector<double> losses;
  for (size_t i = 0; i < scores.first.size(); ++i) {
    losses.push_back(scores.first[i] - scores.second[i]);
  }
  return losses;
}

std::optional<double> standard_error_of(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1) / n);
}

boost::math::students_t t_of(size_t n) {
  return boost::math::students_t(static_cast<double>(n - 1));
}

// nullopt: fewer than two values, or all the same but not zero, which has no t.
std::optional<double> t_test(std::span<const double> values) {
  const std::optional<double> error = standard_error_of(values);
  if (!error) return std::nullopt;
  const double center = mean(values);
  if (*error == 0) return center == 0 ? std::optional(1.0) : std::nullopt;
  const double t = std::abs(center) / *error;
  return 2 * boost::math::cdf(boost::math::complement(t_of(values.size()), t));
}

struct Counts {
  int64_t lost = 0;
  int64_t gained = 0;
  int64_t n = 0;
};

Counts counts_of(std::span<const double> losses) {
  return {std::count_if(losses.begin(), losses.end(), [](double l) { return l > 0; }),
          std::count_if(losses.begin(), losses.end(), [](double l) { return l < 0; }),
          static_cast<int64_t>(losses.size())};
}

PairedMethod method_of(const PairedScores& scores) {
  return binary(scores.first) && binary(scores.second) ? PairedMethod::mcnemar
                                                       : PairedMethod::paired_t;
}

}  // namespace

std::string_view to_string(PairedMethod method) {
  return method == PairedMethod::mcnemar ? "exact McNemar" : "paired t";
}

PairedComparison compare_paired(const PairedScores& scores) {
  const std::vector<double> losses = losses_of(scores);
  const Counts counts = counts_of(losses);
  PairedComparison result;
  result.method = method_of(scores);
  result.n = counts.n;
  result.gained = counts.gained;
  result.lost = counts.lost;
  result.first = mean(scores.first);
  result.second = mean(scores.second);
  result.loss = mean(losses);
  result.standard_error = standard_error_of(losses);
  if (result.method == PairedMethod::mcnemar) {
    result.interval = paired_interval(counts.lost, counts.gained, counts.n);
    if (counts.n > 0) result.p_value = mcnemar_exact(counts.lost, counts.gained);
  } else {
    result.interval = mean_interval(losses);
    result.p_value = t_test(losses);
  }
  return result;
}

std::optional<Interval> bootstrap_interval(std::span<const double> values, uint64_t seed,
                                           int resamples) {
  if (values.size() < 2 || resamples < 1) return std::nullopt;
  Rng rng(seed, "bootstrap");
  std::vector<double> means;
  means.reserve(static_cast<size_t>(resamples));
  for (int i = 0; i < resamples; ++i) {
    double sum = 0;
    for (size_t k = 0; k < values.size(); ++k) sum += values[rng.below(values.size())];
    means.push_back(sum / static_cast<double>(values.size()));
  }
  std::sort(means.begin(), means.end());
  // Quantile between order statistics, as numpy's default.
  const auto quantile = [&](double share) {
    const double place = share * static_cast<double>(means.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, means.size() - 1);
    return std::lerp(means[below], means[above], place - static_cast<double>(below));
  };
  const double tail = (1 - kConfidence) / 2;
  return Interval{quantile(tail), quantile(1 - tail)};
}

double mcnemar_exact(int64_t lost, int64_t gained) {
  if (lost == gained) return 1;
  const boost::math::binomial chance(static_cast<double>(lost + gained), 0.5);
  return std::min(1.0, 2 * boost::math::cdf(chance, static_cast<double>(std::min(lost, gained))));
}

std::optional<double> loss_bound(const PairedScores& scores) {
  const std::vector<double> losses = losses_of(scores);
  if (method_of(scores) == PairedMethod::mcnemar) {
    const Counts counts = counts_of(losses);
    return paired_upper_bound(counts.lost, counts.gained, counts.n);
  }
  const std::optional<double> error = standard_error_of(losses);
  if (!error) return std::nullopt;
  return mean(losses) + boost::math::quantile(t_of(losses.size()), kConfidence) * *error;
}

std::optional<double> non_inferiority_p(const PairedScores& scores, double delta) {
  const std::vector<double> losses = losses_of(scores);
  if (method_of(scores) == PairedMethod::mcnemar) {
    const Counts counts = counts_of(losses);
    if (counts.n == 0) return std::nullopt;
    return boost::math::cdf(boost::math::normal(),
                            paired_score(counts.lost, counts.gained, counts.n, delta));
  }
  const std::optional<double> error = standard_error_of(losses);
  if (!error) return std::nullopt;
  const double distance = mean(losses) - delta;
  if (*error == 0) return distance <= 0 ? 0.0 : 1.0;
  return boost::math::cdf(t_of(losses.size()), distance / *error);
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double highest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto claims = static_cast<double>(order.size() - i);
    highest = std::max(highest, std::min(1.0, claims * p_values[order[i]]));
    adjusted[order[i]] = highest;
  }
  return adjusted;
}

}  // namespace kvsweep::search
