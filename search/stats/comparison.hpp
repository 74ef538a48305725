// Comparing what two maps score on the same examples: is the second worse, by how much at most, and
// what remains of it when several maps are judged at once. Pure, deterministic, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "search/stats/interval.hpp"

namespace kvsweep::search {

// mcnemar: exact, for scores that are all 0 or 1. paired_t: Student's t of the differences.
enum class PairedMethod { mcnemar, paired_t };
std::string_view to_string(PairedMethod method);  // "exact McNemar", "paired t"

// Scores of the same examples in the same order; of equal size, higher is better.
struct PairedScores {
  std::span<const double> first;   // the reference
  std::span<const double> second;  // what is compared with it
};

struct PairedComparison {
  PairedMethod method = PairedMethod::mcnemar;
  int64_t n = 0;
  int64_t gained = 0;  // examples on which the second scores higher
  int64_t lost = 0;    // and lower
  double first = 0;    // means
  double second = 0;
  double loss = 0;                       // first - second
  std::optional<double> standard_error;  // of the loss; nullopt for fewer than two examples
  std::optional<Interval> interval;      // of the loss, 95 %, two-sided: Tango's for 0/1 scores
                                         // (interval.hpp), else Student's t
  std::optional<double> p_value;         // that loss is 0, two-sided; nullopt when nothing says
};
PairedComparison compare_paired(const PairedScores& scores);

// Percentile bootstrap (Efron, 1979) of the mean: 95 %, two-sided, from `resamples` draws of the
// stream "bootstrap" of `seed`. For differences whose distribution is far from normal. nullopt for
// fewer than two values. O(resamples * values).
std::optional<Interval> bootstrap_interval(std::span<const double> values, uint64_t seed,
                                           int resamples = 10'000);

// Two-sided p-value of the exact McNemar test: of the examples that differ, is one kind more
// frequent than chance? 1 when none differs.
double mcnemar_exact(int64_t lost, int64_t gained);

// Non-inferiority. The least delta for which "loss <= delta at 95 %" holds: the one-sided upper
// bound of the loss. nullopt when the examples say nothing (fewer than two, or none at all).
std::optional<double> loss_bound(const PairedScores& scores);
// p-value of the hypothesis "loss >= delta"; at most 0.05 exactly when loss_bound <= delta.
std::optional<double> non_inferiority_p(const PairedScores& scores, double delta);

// p-values adjusted for being claimed together, in the order given (Holm, Scandinavian Journal of
// Statistics 6, 1979): the chance that any claim at or below 0.05 is false stays at 5 %. Example:
// 0.01, 0.04, 0.03 become 0.03, 0.06, 0.06.
std::vector<double> holm(std::span<const double> p_values);

}  // namespace kvsweep::search
