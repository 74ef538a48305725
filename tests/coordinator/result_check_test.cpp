#include "coordinator/result_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kvsweep::coordinator {
namespace {

const TaskData kTask{.protocol = {.name = "word_problems"}, .example_hashes = {"h0", "h1", "h2"}};

Measurement forced(int64_t example, const std::string& hash) {
  return {.example = example, .example_hash = hash, .token_agreement = 0.5, .kl = 0.1, .nll = 2};
}

ErrorCode refused(const Measurement& m, RunMode mode) {
  const Status status = check_measurements({{"map", {m}}}, kTask, mode);
  return status.ok() ? ErrorCode::conflict : status.error().code;
}

TEST(ResultCheck, AcceptsWhatTheModeProduces) {
  EXPECT_TRUE(
      check_measurements({{"map", {forced(0, "h0"), forced(2, "h2")}}}, kTask, RunMode::forced)
          .ok());
  Measurement generated{.example = 1, .example_hash = "h1", .exact_match = 1};
  EXPECT_TRUE(check_measurements({{"map", {generated}}}, kTask, RunMode::generate).ok());
}

TEST(ResultCheck, ScoredTextsHaveTheirLikelihood) {
  Measurement text{.example = 1, .example_hash = "h1", .nll = 2.5};
  EXPECT_TRUE(check_measurements({{"map", {text}}}, kTask, RunMode::rolling).ok());
  EXPECT_EQ(refused(text, RunMode::choices), ErrorCode::numerics);  // no exact_match
  text.exact_match = 1;
  EXPECT_TRUE(check_measurements({{"map", {text}}}, kTask, RunMode::choices).ok());
  text.nll = std::nan("");
  EXPECT_EQ(refused(text, RunMode::rolling), ErrorCode::numerics);
  EXPECT_EQ(refused(text, RunMode::choices), ErrorCode::numerics);
}

TEST(ResultCheck, AnotherExampleIsBadInput) {
  EXPECT_EQ(refused(forced(0, "h1"), RunMode::forced), ErrorCode::bad_input);
  EXPECT_EQ(refused(forced(3, "h0"), RunMode::forced), ErrorCode::bad_input);
  EXPECT_EQ(refused(forced(-1, "h0"), RunMode::forced), ErrorCode::bad_input);
}

TEST(ResultCheck, FiguresThatAreNoneAreNumerics) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -0.1, 1.1}) {
    Measurement m = forced(0, "h0");
    m.token_agreement = bad;
    EXPECT_EQ(refused(m, RunMode::forced), ErrorCode::numerics) << bad;
  }
  Measurement m = forced(0, "h0");
  m.kl = std::nan("");
  EXPECT_EQ(refused(m, RunMode::forced), ErrorCode::numerics);
  m = forced(0, "h0");
  m.nll.reset();
  EXPECT_EQ(refused(m, RunMode::forced), ErrorCode::numerics);
  EXPECT_EQ(refused(forced(0, "h0"), RunMode::generate), ErrorCode::numerics);  // no exact_match
}

TEST(ResultCheck, Descriptions) {
  EXPECT_TRUE(check_description({2, {"a", "b"}}).ok());
  EXPECT_FALSE(check_description({2, {"a"}}).ok());
  EXPECT_FALSE(check_description({0, {}}).ok());
}

}  // namespace
}  // namespace kvsweep::coordinator
