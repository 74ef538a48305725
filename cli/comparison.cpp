#include "cli/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace kvsweep::cli {
namespace {

using Measured = std::map<std::string, Measurement>;

constexpr uint64_t kBootstrapSeed = 1;

struct MetricField {
  const char* name;
  RunMode mode;
  std::optional<double> Measurement::*field;
  bool lower_is_better = false;
};

constexpr MetricField kMetrics[] = {
    {"exact_match", RunMode::generate, &Measurement::exact_match},
    {"strict_match", RunMode::generate, &Measurement::strict_match},
    {"token_agreement", RunMode::forced, &Measurement::token_agreement},
    {"kl", RunMode::forced, &Measurement::kl, true},
    {"exact_match", RunMode::choices, &Measurement::exact_match},
    {"strict_match", RunMode::choices, &Measurement::strict_match},
    {"nll", RunMode::choices, &Measurement::nll, true},
    {"nll", RunMode::rolling, &Measurement::nll, true},
};

struct ExamplePair {
  const Measurement* first;
  const Measurement* second;
};

std::vector<ExamplePair> in_common(const Measured& first, const Measured& second) {
  std::vector<ExamplePair> pairs;
  for (const auto& [hash, measurement] : first) {
    const auto other = second.find(hash);
    if (other != second.end()) pairs.push_back({&measurement, &other->second});
  }
  std::sort(pairs.begin(), pairs.end(), [](const ExamplePair& a, const ExamplePair& b) {
    return std::pair(a.first->example, a.first->example_hash) <
           std::pair(b.first->example, b.first->example_hash);
  });
  return pairs;
}

ComparedExample example_of(const ExamplePair& pair, double first, double second) {
  return {pair.first->example,
          pair.first->example_hash,
          first,
          second,
          pair.first->answer,
          pair.second->answer,
          pair.first->text,
          pair.second->text};
}

// nullopt when no example has the metric under both maps.
std::optional<ComparedMetric> compare_metric(const MetricField& metric,
                                             const std::vector<ExamplePair>& pairs,
                                             const ComparisonOptions& options) {
  ComparedMetric compared;
  compared.metric = metric.name;
  std::vector<double> first;
  std::vector<double> second;
  for (const ExamplePair& pair : pairs) {
    const std::optional<double> a = pair.first->*metric.field;
    const std::optional<double> b = pair.second->*metric.field;
    if (!a || !b) continue;
    first.push_back(metric.lower_is_better ? -*a : *a);
    second.push_back(metric.lower_is_better ? -*b : *b);
    const bool reworded = pair.first->text != pair.second->text;
    compared.other_words += reworded;
    if (*a != *b) compared.changed.push_back(example_of(pair, *a, *b));
  }
  if (first.empty()) return std::nullopt;
  const search::PairedScores scores{first, second};
  compared.result = search::compare_paired(scores);
  compared.bound = search::loss_bound(scores);
  if (options.max_loss) compared.claim_p = search::non_inferiority_p(scores, *options.max_loss);
  if (compared.result.method != search::PairedMethod::mcnemar) {
    std::vector<double> losses;
    for (size_t i = 0; i < first.size(); ++i) losses.push_back(first[i] - second[i]);
    compared.bootstrap = search::bootstrap_interval(losses, kBootstrapSeed);
  }
  if (metric.lower_is_better) {
    compared.result.first = -compared.result.first;
    compared.result.second = -compared.result.second;
  }
  return compared;
}

// The same model, protocol, baseline type and numerics: what makes examples a pair.
bool same_ground(const store::MeasurementScope& a, const store::MeasurementScope& b) {
  return a.model_hash == b.model_hash && a.protocol_hash == b.protocol_hash &&
         a.numerics_class == b.numerics_class && a.base == b.base;
}

std::string ground_of(const ComparedMetric& metric) {
  const store::MeasurementScope& scope = metric.scope.scope;
  return scope.model_hash + scope.protocol_hash + scope.numerics_class +
         std::string(to_string(scope.base)) + metric.metric;
}

using PValue = std::optional<double> ComparedMetric::*;

void adjust(const std::vector<ComparedMetric*>& family, PValue adjusted,
            const std::vector<double>& values) {
  const std::vector<double> corrected = search::holm(values);
  for (size_t i = 0; i < family.size(); ++i) family[i]->*adjusted = corrected[i];
}

void adjust_family(const std::vector<ComparedMetric*>& family) {
  std::vector<ComparedMetric*> tested;
  std::vector<ComparedMetric*> claimed;
  std::vector<double> tests;
  std::vector<double> claims;
  for (ComparedMetric* metric : family) {
    if (metric->result.p_value) {
      tested.push_back(metric);
      tests.push_back(*metric->result.p_value);
    }
    if (metric->claim_p) {
      claimed.push_back(metric);
      claims.push_back(*metric->claim_p);
    }
  }
  adjust(tested, &ComparedMetric::adjusted_p, tests);
  adjust(claimed, &ComparedMetric::adjusted_claim_p, claims);
}

}  // namespace

Result<Comparison> compare_maps(const store::Store& store, const ComparedMap& first,
                                const ComparedMap& second, const ComparisonOptions& options) {
  Comparison comparison{first, second, {}};
  KVSWEEP_ASSIGN(const std::vector<store::MeasuredScope> ours, store.measured_scopes(first.id));
  KVSWEEP_ASSIGN(const std::vector<store::MeasuredScope> theirs, store.measured_scopes(second.id));
  for (const store::MeasuredScope& scope : ours) {
    if (!options.model_hash.empty() && scope.scope.model_hash != options.model_hash) continue;
    for (const store::MeasuredScope& other : theirs) {
      if (!same_ground(scope.scope, other.scope)) continue;
      KVSWEEP_ASSIGN(const Measured a, store.measurements(scope));
      KVSWEEP_ASSIGN(const Measured b, store.measurements(other));
      const std::vector<ExamplePair> pairs = in_common(a, b);
      for (const MetricField& metric : kMetrics) {
        if (metric.mode != scope.mode) continue;
        std::optional<ComparedMetric> compared = compare_metric(metric, pairs, options);
        if (!compared) continue;
        compared->scope = scope;
        comparison.metrics.push_back(std::move(*compared));
      }
    }
  }
  if (!comparison.metrics.empty()) return comparison;
  return not_found(fmt::format(
      "{} and {} were never measured on the same example with the same model and numerics; "
      "`kvsweep evaluate` runs one map on a task",
      first.label, second.label));
}

void adjust_for_many(std::vector<Comparison>& comparisons) {
  if (comparisons.size() < 2) return;
  std::map<std::string, std::vector<ComparedMetric*>> families;
  for (Comparison& comparison : comparisons) {
    for (ComparedMetric& metric : comparison.metrics) {
      families[ground_of(metric)].push_back(&metric);
    }
  }
  for (const auto& [ground, family] : families) adjust_family(family);
}

}  // namespace kvsweep::cli
