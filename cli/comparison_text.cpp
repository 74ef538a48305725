// A comparison for people and for programs.
#include <fmt/format.h>

#include "cli/comparison.hpp"
#include "cli/table.hpp"
#include "cli/trial_view.hpp"

namespace kvsweep::cli {
namespace {

std::string p_text(const std::optional<double>& p) {
  if (!p) return "-";
  return *p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", *p);
}

std::string heading_of(const ComparedMetric& metric) {
  const TaskProtocol& protocol = metric.scope.protocol;
  std::string text = fmt::format("{}, split {}, {}", protocol.name, protocol.split, metric.metric);
  if (protocol.length > 0) text += fmt::format(", {} tokens", protocol.length);
  return text;
}

std::string claim_text(const ComparedMetric& metric, double max_loss) {
  const std::optional<double> p =
      metric.adjusted_claim_p ? metric.adjusted_claim_p : metric.claim_p;
  if (!p) return fmt::format("; loss <= {}: too few examples to say", max_loss);
  return fmt::format("; loss <= {}: {} at 95 % (p = {}{})", max_loss,
                     *p <= 0.05 ? "holds" : "not shown", p_text(p),
                     metric.adjusted_claim_p ? ", Holm" : "");
}

std::string changes_text(const ComparedMetric& metric, const ComparisonView& view) {
  std::string text = fmt::format("{}: {} examples changed, {} gained, {} lost", heading_of(metric),
                                 metric.changed.size(), metric.result.gained, metric.result.lost);
  if (metric.scope.mode == RunMode::generate) {
    text += fmt::format("; {} outputs differ", metric.other_words);
  }
  if (view.max_loss) {
    text += claim_text(metric, *view.max_loss);
  } else if (metric.bound) {
    text += fmt::format("; loss <= {:.4f} at 95 %", *metric.bound);
  }
  return text + "\n";
}

// An output on lines of its own, so that it can be told from what is said about it.
std::string quoted(const std::string& name, const std::string& answer, const std::string& output) {
  std::string text = fmt::format("    {} answers {}\n      | ", name, answer);
  for (const char c : output) {
    text += c;
    if (c == '\n') text += "      | ";
  }
  return text + "\n";
}

std::string samples_text(const ComparedMetric& metric) {
  std::string text;
  for (const ComparedExample& example : metric.changed) {
    text += fmt::format("  example {}: {:.4f} -> {:.4f}\n", example.number, example.first,
                        example.second);
    if (metric.scope.mode != RunMode::generate) continue;
    text += quoted("A", example.first_answer, example.first_text);
    text += quoted("B", example.second_answer, example.second_text);
  }
  return text;
}

Json number_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json map_json(const ComparedMap& map) {
  return {{"name", map.label},
          {"map_id", map.id},
          {"map", summary(map.map)},
          {"scheme", map.map.scheme.name}};
}

Json example_json(const ComparedExample& example, bool samples) {
  Json json = {{"example", example.number},
               {"hash", example.hash},
               {"first", example.first},
               {"second", example.second}};
  if (samples) {
    json["first_answer"] = example.first_answer;
    json["second_answer"] = example.second_answer;
    json["first_text"] = example.first_text;
    json["second_text"] = example.second_text;
  }
  return json;
}

Json metric_json(const ComparedMetric& metric, const ComparisonView& view) {
  const search::PairedComparison& result = metric.result;
  Json examples = Json::array();
  for (const ComparedExample& example : metric.changed) {
    examples.push_back(example_json(example, view.samples));
  }
  Json json = {{"task", to_json(metric.scope.protocol)},
               {"mode", to_string(metric.scope.mode)},
               {"model_hash", metric.scope.scope.model_hash},
               {"numerics_class", metric.scope.scope.numerics_class},
               {"baseline_kv", to_string(metric.scope.scope.base)},
               {"metric", metric.metric},
               {"n", result.n},
               {"first", result.first},
               {"second", result.second},
               {"loss", result.loss},
               {"standard_error", number_json(result.standard_error)},
               {"loss_95", interval_json(result.interval)},
               {"loss_95_bootstrap", interval_json(metric.bootstrap)},
               {"loss_bound_95", number_json(metric.bound)},
               {"method", search::to_string(result.method)},
               {"p_value", number_json(result.p_value)},
               {"p_value_holm", number_json(metric.adjusted_p)},
               {"gained", result.gained},
               {"lost", result.lost},
               {"outputs_changed", metric.other_words},
               {"changed", std::move(examples)}};
  if (view.max_loss) {
    json["max_loss"] = *view.max_loss;
    json["max_loss_p"] = number_json(metric.claim_p);
    json["max_loss_p_holm"] = number_json(metric.adjusted_claim_p);
  }
  return json;
}

}  // namespace

std::string comparison_text(const Comparison& comparison, const ComparisonView& view,
                            const Terminal& terminal) {
  const auto side = [](const char* name, const ComparedMap& map) {
    return fmt::format("{}  {}: {}, scheme {}, map {}\n", name, map.label, summary(map.map),
                       map.map.scheme.name, map.id.substr(0, 12));
  };
  std::string text = side("A", comparison.first) + side("B", comparison.second) + "\n";
  bool adjusted = false;
  for (const ComparedMetric& metric : comparison.metrics) {
    adjusted = adjusted || metric.adjusted_p.has_value();
  }
  std::vector<std::string> headers = {"task",           "split", "metric", ">A",     ">B", ">loss",
                                      ">95 % interval", ">s.e.", ">p",     "method", ">n"};
  if (adjusted) headers.insert(headers.begin() + 9, ">p, Holm");
  Table table(headers);
  std::string changes;
  for (const ComparedMetric& metric : comparison.metrics) {
    const search::PairedComparison& result = metric.result;
    std::vector<std::string> row = {metric.scope.protocol.name,
                                    metric.scope.protocol.split,
                                    metric.metric,
                                    number_text(result.first),
                                    number_text(result.second),
                                    number_text(result.loss),
                                    interval_text(result.interval),
                                    number_text(result.standard_error),
                                    p_text(result.p_value),
                                    std::string(search::to_string(result.method)),
                                    std::to_string(result.n)};
    if (adjusted) row.insert(row.begin() + 9, p_text(metric.adjusted_p));
    table.row(std::move(row));
    changes += changes_text(metric, view);
    if (view.samples) changes += samples_text(metric);
  }
  return text + table.text(terminal) + "\n" + changes;
}

Json comparison_json(const Comparison& comparison, const ComparisonView& view) {
  Json metrics = Json::array();
  for (const ComparedMetric& metric : comparison.metrics) {
    metrics.push_back(metric_json(metric, view));
  }
  return {{"first", map_json(comparison.first)},
          {"second", map_json(comparison.second)},
          {"metrics", std::move(metrics)}};
}

}  // namespace kvsweep::cli
