#include <gtest/gtest.h>

#include "coordinator/coordinator.hpp"

namespace kvsweep::coordinator {
namespace {

Measurement answered(int64_t example, double exact, const std::string& answer,
                     const std::string& text = "t") {
  return {.example = example, .text = text, .answer = answer, .exact_match = exact};
}

Measurement forced(int64_t example, double agreement, double kl) {
  return {.example = example, .token_agreement = agreement, .kl = kl, .nll = 1};
}

MetricValue value_of(Metric metric, const std::vector<Measurement>& map,
                     const std::vector<Measurement>& baseline) {
  const auto value = metric_value(metric, map, baseline);
  EXPECT_TRUE(value.ok());
  return value.ok() ? *value : MetricValue{};
}

TEST(MetricValue, ExactMatchIsPairedByExample) {
  // The baseline knows more examples and in another order; only the pairs count:
  // map 1 of 2, baseline 2 of 2.
  const auto value = value_of(Metric::exact_match, {answered(3, 1, "a"), answered(5, 0, "b")},
                              {answered(5, 1, "c"), answered(1, 0, "d"), answered(3, 1, "a")});
  EXPECT_EQ(value.value, 0.5);
  EXPECT_EQ(value.baseline, 1.0);
  EXPECT_EQ(value.loss, 0.5);
  EXPECT_EQ(value.examples, 2);
  ASSERT_TRUE(value.interval.has_value());
  EXPECT_EQ(value.interval->low, search::paired_interval(1, 0, 2)->low);
  EXPECT_EQ(value.interval->high, search::paired_interval(1, 0, 2)->high);
  EXPECT_EQ(value.method, "Tango");
}

TEST(MetricValue, LikelihoodsLoseWhatTheyRiseBy) {
  const Measurement map{.example = 0, .nll = 2.5};
  const Measurement baseline{.example = 0, .nll = 2.0};
  const auto value = value_of(Metric::nll, {map}, {baseline});
  EXPECT_EQ(value.value, 2.5);
  EXPECT_EQ(value.baseline, 2.0);
  EXPECT_EQ(value.loss, 0.5);
}

TEST(MetricValue, PartialScoresTakeStudentsT) {
  const auto value = value_of(Metric::exact_match, {answered(0, 0.5, "a"), answered(1, 0.25, "b")},
                              {answered(0, 1, "a"), answered(1, 1, "b")});
  EXPECT_EQ(value.method, "Student's t");
  EXPECT_EQ(value.interval->low, search::mean_interval(std::vector{0.5, 0.75})->low);
}

TEST(MetricValue, ABetterMapHasNegativeLoss) {
  EXPECT_EQ(value_of(Metric::exact_match, {answered(0, 1, "a")}, {answered(0, 0, "b")}).loss, -1.0);
}

TEST(MetricValue, AnswersWithoutAnAnswerAgreeOnlyInFull) {
  const auto value =
      value_of(Metric::answer_agreement,
               {answered(0, 0, "7"), answered(1, 0, "8"), answered(2, 0, "[invalid]", "same"),
                answered(3, 0, "[invalid]", "xxxx")},
               {answered(0, 1, "7", "other"), answered(1, 1, "9"),
                answered(2, 0, "[invalid]", "same"), answered(3, 0, "[invalid]", "yyyy")});
  EXPECT_EQ(value.value, 0.5);  // examples 0 and 2
  EXPECT_EQ(value.interval->high, search::share_interval(2, 4)->high);
  EXPECT_EQ(value.method, "Wilson");
  EXPECT_EQ(value.baseline, 1.0);
  EXPECT_EQ(value.loss, 0.5);
}

TEST(MetricValue, ForcedMetrics) {
  const std::vector<Measurement> baseline = {forced(0, 1, 0), forced(1, 1, 0)};
  const std::vector<Measurement> map = {forced(0, 0.75, 0.5), forced(1, 0.5, 0.25)};
  const auto agreement = value_of(Metric::token_agreement, map, baseline);
  EXPECT_EQ(agreement.value, 0.625);
  EXPECT_EQ(agreement.loss, 0.375);
  EXPECT_EQ(agreement.baseline, 1.0);
  EXPECT_EQ(agreement.interval->low, search::mean_interval(std::vector{0.25, 0.5})->low);
  const auto kl = value_of(Metric::kl, map, baseline);
  EXPECT_EQ(kl.value, 0.375);
  EXPECT_EQ(kl.loss, 0.375);
  EXPECT_EQ(kl.baseline, 0.0);
}

TEST(MetricValue, GapsAreErrors) {
  EXPECT_FALSE(metric_value(Metric::exact_match, {}, {}).ok());
  EXPECT_FALSE(metric_value(Metric::exact_match, {answered(1, 1, "a")}, {}).ok());
  EXPECT_FALSE(metric_value(Metric::kl, {answered(1, 1, "a")}, {forced(1, 1, 0)}).ok());
  EXPECT_FALSE(metric_value(Metric::kl, {forced(1, 1, 0)}, {answered(1, 1, "a")}).ok());
}

}  // namespace
}  // namespace kvsweep::coordinator
