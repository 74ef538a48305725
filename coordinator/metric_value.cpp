#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "coordinator/coordinator.hpp"

namespace kvsweep::coordinator {

namespace {

constexpr const char* kNoAnswer = "[invalid]";

// Two outputs without an answer agree only when they are the same text: else a map that wrecks
// every output would agree with a weak model that often gives no answer.
double answers_agree(const Measurement& map, const Measurement& baseline) {
  if (map.answer != baseline.answer) return 0;
  return map.answer != kNoAnswer || map.text == baseline.text ? 1 : 0;
}

// What one example scores under the map and under the baseline.
struct Scores {
  double map = 0;
  double baseline = 0;
};

// nullopt when a figure that the metric needs is absent.
std::optional<Scores> scores(Metric metric, const Measurement& m, const Measurement& b) {
  const auto both = [](const std::optional<double>& map, const std::optional<double>& baseline) {
    return map && baseline ? std::optional(Scores{*map, *baseline}) : std::nullopt;
  };
  switch (metric) {
    case Metric::exact_match:
      return both(m.exact_match, b.exact_match);
    case Metric::answer_agreement:
      return Scores{answers_agree(m, b), 1};
    case Metric::token_agreement:
      return both(m.token_agreement, b.token_agreement);
    case Metric::kl:
      return both(m.kl, b.kl);
    case Metric::nll:
      return both(m.nll, b.nll);
  }
  return std::nullopt;
}

double loss_of(Metric metric, const Scores& scores) {
  switch (metric) {
    case Metric::exact_match:
      return scores.baseline - scores.map;
    case Metric::kl:
      return scores.map;
    case Metric::nll:
      return scores.map - scores.baseline;
    case Metric::answer_agreement:
    case Metric::token_agreement:
      break;
  }
  return 1 - scores.map;
}

// `losses` of the single examples.
struct LossInterval {
  std::optional<search::Interval> interval;
  std::string_view method;
};
LossInterval loss_interval(Metric metric, const std::vector<double>& losses) {
  const auto n = static_cast<int64_t>(losses.size());
  const int64_t lost = std::count(losses.begin(), losses.end(), 1.0);
  const int64_t gained = std::count(losses.begin(), losses.end(), -1.0);
  const int64_t even = std::count(losses.begin(), losses.end(), 0.0);
  const bool binary = lost + gained + even == n;  // a task may give partial scores
  if (metric == Metric::exact_match && binary) {
    return {search::paired_interval(lost, gained, n), "Tango"};
  }
  if (metric == Metric::answer_agreement) {
    return {search::share_interval(lost, n), "Wilson"};
  }
  return {search::mean_interval(losses), "Student's t"};
}

}  // namespace

Result<MetricValue> metric_value(Metric metric, const std::vector<Measurement>& map,
                                 const std::vector<Measurement>& baseline) {
  std::map<int64_t, const Measurement*> by_example;
  for (const Measurement& m : baseline) by_example[m.example] = &m;
  Scores sums;
  std::vector<double> losses;
  for (const Measurement& m : map) {
    const auto it = by_example.find(m.example);
    if (it == by_example.end()) {
      return Error{ErrorCode::internal,
                   fmt::format("example {} was not measured under the baseline", m.example)};
    }
    const std::optional<Scores> pair = scores(metric, m, *it->second);
    if (!pair) {
      return Error{ErrorCode::internal, fmt::format("the measurement of example {} has no {}",
                                                    m.example, to_string(metric))};
    }
    sums.map += pair->map;
    sums.baseline += pair->baseline;
    losses.push_back(loss_of(metric, *pair));
  }
  if (map.empty()) return bad_input("a metric needs at least one measured example; there is none");
  const auto count = static_cast<double>(map.size());
  const Scores means{sums.map / count, sums.baseline / count};
  const LossInterval loss = loss_interval(metric, losses);
  return MetricValue{.value = means.map,
                     .baseline = means.baseline,
                     .loss = loss_of(metric, means),
                     .examples = static_cast<int64_t>(map.size()),
                     .interval = loss.interval,
                     .method = loss.method};
}

}  // namespace kvsweep::coordinator
