// Comparison: two maps on the examples that both were measured on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "core/json.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "search/stats/comparison.hpp"
#include "store/store.hpp"

namespace kvsweep::cli {

// One of the maps, as a person named it.
struct ComparedMap {
  std::string label;  // "trial 17 of nightly/small", "map 0123456789ab"
  std::string id;
  PrecisionMap map;
};

// An example that the two maps score differently, or answer in other words.
struct ComparedExample {
  int64_t number = 0;  // in the split
  std::string hash;
  double first = 0;
  double second = 0;
  std::string first_answer;
  std::string second_answer;
  std::string first_text;
  std::string second_text;
};

// One metric of one task, paired over the examples that both maps have.
struct ComparedMetric {
  store::MeasuredScope scope;                 // of the first map
  std::string metric;                         // exact_match, strict_match, token_agreement, kl
  search::PairedComparison result;            // of kl: lower is better, loss = second - first
  std::optional<double> bound;                // "loss <= bound at 95 %"
  std::optional<search::Interval> bootstrap;  // of the loss; not for 0/1 scores
  std::optional<double> claim_p;              // that the loss is not below --max-loss
  int64_t other_words = 0;                    // outputs that differ as texts
  std::vector<ComparedExample> changed;
  std::optional<double> adjusted_p;        // Holm, over the maps compared at once
  std::optional<double> adjusted_claim_p;  // likewise
};

struct Comparison {
  ComparedMap first;
  ComparedMap second;
  std::vector<ComparedMetric> metrics;
};

struct ComparisonOptions {
  std::string model_hash;  // only of this model; "" = of any
  std::optional<double> max_loss;
};

// Error (not_found) when the two have no example in common.
Result<Comparison> compare_maps(const store::Store& store, const ComparedMap& first,
                                const ComparedMap& second, const ComparisonOptions& options);

// Fills the adjusted p-values: of each task and metric over all comparisons. Nothing for one.
void adjust_for_many(std::vector<Comparison>& comparisons);

struct ComparisonView {
  std::optional<double> max_loss;
  bool samples = false;  // the changed examples with both outputs
};
std::string comparison_text(const Comparison& comparison, const ComparisonView& view,
                            const Terminal& terminal);
Json comparison_json(const Comparison& comparison, const ComparisonView& view);

}  // namespace kvsweep::cli
