#include <fmt/format.h>

#include <map>

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

struct Sums {
  double map = 0;
  double baseline = 0;
};

// False when a figure that the metric needs is absent.
bool add_pair(Metric metric, const Measurement& m, const Measurement& b, Sums* sums) {
  switch (metric) {
    case Metric::exact_match:
      if (!m.exact_match || !b.exact_match) return false;
      sums->map += *m.exact_match;
      sums->baseline += *b.exact_match;
      return true;
    case Metric::answer_agreement:
      sums->map += answers_agree(m, b);
      sums->baseline += 1;
      return true;
    case Metric::token_agreement:
      if (!m.token_agreement || !b.token_agreement) return false;
      sums->map += *m.token_agreement;
      sums->baseline += *b.token_agreement;
      return true;
    case Metric::kl:
      if (!m.kl || !b.kl) return false;
      sums->map += *m.kl;
      sums->baseline += *b.kl;
      return true;
  }
  return false;
}

double loss_of(Metric metric, double value, double baseline) {
  switch (metric) {
    case Metric::exact_match:
      return baseline - value;
    case Metric::kl:
      return value;
    case Metric::answer_agreement:
    case Metric::token_agreement:
      break;
  }
  return 1 - value;
}

}  // namespace

Result<MetricValue> metric_value(Metric metric, const std::vector<Measurement>& map,
                                 const std::vector<Measurement>& baseline) {
  std::map<int64_t, const Measurement*> by_example;
  for (const Measurement& m : baseline) by_example[m.example] = &m;
  Sums sums;
  for (const Measurement& m : map) {
    const auto it = by_example.find(m.example);
    if (it == by_example.end()) {
      return Error{ErrorCode::internal,
                   fmt::format("example {} was not measured under the baseline", m.example)};
    }
    if (!add_pair(metric, m, *it->second, &sums)) {
      return Error{ErrorCode::internal, fmt::format("the measurement of example {} has no {}",
                                                    m.example, to_string(metric))};
    }
  }
  if (map.empty()) return bad_input("a metric needs at least one measured example; there is none");
  const auto count = static_cast<double>(map.size());
  MetricValue value{.value = sums.map / count,
                    .baseline = sums.baseline / count,
                    .examples = static_cast<int64_t>(map.size())};
  value.loss = loss_of(metric, value.value, value.baseline);
  return value;
}

}  // namespace kvsweep::coordinator
