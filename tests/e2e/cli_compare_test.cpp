// `kvsweep compare` over measurements that were chosen by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/hash.hpp"
#include "core/json.hpp"
#include "search/stats/comparison.hpp"
#include "store/store.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/sample_database.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kExamples = 40;

// Right answers by example: trial 0 the first 30, trial 1 the examples 9 to 32 (9 lost, 3 gained),
// trial 4 the first 5 (25 lost).
bool right(int64_t trial, int example) {
  if (trial == 0) return example < 30;
  if (trial == 1) return example >= 9 && example < 33;
  return example < 5;
}

Measurement generated(int64_t trial, int example) {
  Measurement m;
  m.example = example;
  m.example_hash = sha256_hex("example " + std::to_string(example));
  m.answer = right(trial, example) ? "7" : "8";
  m.text = "Trial " + std::to_string(trial) + "\nsays " + m.answer + ".";
  m.exact_match = right(trial, example) ? 1 : 0;
  m.output_tokens = 4;
  return m;
}

// Agreement 1 - trial/8 - example/100, so that every difference of trials 0 and 1 is 0.125.
Measurement forced(int64_t trial, int example) {
  Measurement m = generated(trial, example);
  m.text.clear();
  m.answer.clear();
  m.exact_match.reset();
  m.token_agreement = 1 - static_cast<double>(trial) / 8 - example / 100.0;
  m.kl = 0.01 * example * static_cast<double>(trial);
  return m;
}

class CliCompare : public ::testing::Test {
 protected:
  void SetUp() override {
    test::make_sample_database(db_);
    auto store = store::Store::open(db_, {store::OpenMode::read_write, false}).value();
    const auto study = store.study("small").value();
    const TaskProtocol& protocol = study.spec.objective_task.protocol;
    for (const RunMode mode : {RunMode::generate, RunMode::forced}) {
      ASSERT_TRUE(store.put_task(protocol, mode, kExamples).ok());
    }
    for (const int64_t trial : {0, 1, 4}) {
      const std::string map =
          store.trials(study.id).value().at(static_cast<size_t>(trial) + 1).map_id;
      maps_[trial] = map;
      for (const RunMode mode : {RunMode::generate, RunMode::forced}) {
        std::vector<Measurement> all;
        for (int i = 0; i < kExamples; ++i) {
          all.push_back(mode == RunMode::generate ? generated(trial, i) : forced(trial, i));
        }
        const store::MeasurementScope scope{study.model_hash, map, protocol_hash(protocol, mode),
                                            "cpu/test", BaseType::fp16};
        ASSERT_TRUE(store.put_measurements(scope, all, "w", true, 1).ok());
      }
    }
  }

  test::CliResult run(std::vector<std::string> words) const {
    words.insert(words.begin(), "compare");
    words.insert(words.end(), {"--db", db_});
    return test::run_cli(words);
  }

  Json json(std::vector<std::string> words) const {
    words.push_back("--json");
    const auto result = run(words);
    EXPECT_EQ(result.code, 0) << result.err;
    const auto document = parse_json(result.out, "output");
    EXPECT_TRUE(document.ok()) << result.out;
    return document.ok() ? (*document)["comparisons"] : Json();
  }

  static Json metric(const Json& comparison, const std::string& name) {
    for (const Json& metric : comparison["metrics"]) {
      if (metric["metric"] == name) return metric;
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }

  test::TempDir dir_;
  std::string db_ = dir_.file("sample.db");
  std::map<int64_t, std::string> maps_;
};

TEST_F(CliCompare, CountsWhatChanged) {
  const auto result = run({"0", "1"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("A  trial 0 of nightly/small: K8V8, scheme per-token"),
                                HasSubstr("B  trial 1 of nightly/small: K4V4, scheme per-token")));
  EXPECT_THAT(result.out,
              HasSubstr("word_problems, split search, exact_match: 12 examples changed, 3 gained, "
                        "9 lost; 40 outputs differ; loss <= "));
  EXPECT_THAT(result.out, AllOf(HasSubstr("0.7500  0.6000"), HasSubstr("exact McNemar  40")));
  EXPECT_THAT(result.out, Not(HasSubstr("says 8")));
}

TEST_F(CliCompare, BinaryScoresInJson) {
  const Json row = metric(json({"0", "1"})[0], "exact_match");
  EXPECT_EQ(row["n"], kExamples);
  EXPECT_EQ(row["gained"], 3);
  EXPECT_EQ(row["lost"], 9);
  EXPECT_EQ(row["first"], 0.75);
  EXPECT_EQ(row["second"], 0.6);
  EXPECT_NEAR(row["loss"].get<double>(), 0.15, 1e-12);
  EXPECT_NEAR(row["p_value"].get<double>(), 0.14599609375, 1e-9);  // binomial test of 9 and 3
  const auto interval = *search::paired_interval(9, 3, kExamples);
  EXPECT_NEAR(row["loss_95"][0].get<double>(), interval.low, 1e-12);
  EXPECT_NEAR(row["loss_95"][1].get<double>(), interval.high, 1e-12);
  EXPECT_TRUE(row["loss_95_bootstrap"].is_null());
  EXPECT_TRUE(row["p_value_holm"].is_null());
  EXPECT_EQ(row["outputs_changed"], kExamples);
  ASSERT_EQ(row["changed"].size(), 12u);
  EXPECT_EQ(row["changed"][0]["example"], 0);
  EXPECT_EQ(row["changed"][0]["first"], 1.0);
  EXPECT_EQ(row["changed"][0]["second"], 0.0);
  EXPECT_EQ(row["changed"][11]["example"], 32);
  EXPECT_FALSE(row["changed"][0].contains("first_text"));
  EXPECT_EQ(row["task"]["name"], "word_problems");
}

TEST_F(CliCompare, RealScoresByPairedT) {
  const Json comparison = json({"0", "1"})[0];
  const Json agreement = metric(comparison, "token_agreement");
  EXPECT_NEAR(agreement["loss"].get<double>(), 0.125, 1e-12);
  EXPECT_EQ(agreement["lost"], kExamples);
  EXPECT_EQ(agreement["method"], "paired t");
  // kl grows by 0.01 * example: mean 0.195; lower is better, so the second loses.
  const Json kl = metric(comparison, "kl");
  EXPECT_NEAR(kl["first"].get<double>(), 0, 1e-12);
  EXPECT_NEAR(kl["second"].get<double>(), 0.195, 1e-12);
  EXPECT_NEAR(kl["loss"].get<double>(), 0.195, 1e-12);
  EXPECT_EQ(kl["lost"], kExamples - 1);
  EXPECT_EQ(kl["gained"], 0);
  // Standard error: sd of 0.00, 0.01, ... 0.39 is 0.01 * sqrt(40 * 41 / 12) = 0.11690.
  EXPECT_NEAR(kl["standard_error"].get<double>(), 0.01 * std::sqrt(41.0 / 12), 1e-12);
  EXPECT_LT(kl["loss_95_bootstrap"][0], 0.195);
  EXPECT_GT(kl["loss_95_bootstrap"][1], 0.195);
}

TEST_F(CliCompare, SamplesShowBothOutputs) {
  const auto result = run({"0", "1", "--samples"});
  EXPECT_THAT(result.out, HasSubstr("  example 0: 1.0000 -> 0.0000\n"
                                    "    A answers 7\n      | Trial 0\n      | says 7.\n"
                                    "    B answers 8\n      | Trial 1\n      | says 8.\n"));
  const Json row = metric(json({"0", "1", "--samples"})[0], "exact_match");
  EXPECT_EQ(row["changed"][0]["second_text"], "Trial 1\nsays 8.");
}

TEST_F(CliCompare, SeveralMapsAreCorrectedTogether) {
  const Json both = json({"0", "1", "4", "--max-loss", "0.3"});
  ASSERT_EQ(both.size(), 2u);
  const Json first = metric(both[0], "exact_match");
  const Json second = metric(both[1], "exact_match");
  EXPECT_EQ(second["lost"], 25);
  EXPECT_EQ(first["p_value_holm"], first["p_value"]);  // the larger of two
  EXPECT_NEAR(second["p_value_holm"].get<double>(), 2 * second["p_value"].get<double>(), 1e-15);
  EXPECT_LT(first["max_loss_p"].get<double>(), 0.05);
  EXPECT_NEAR(first["max_loss_p_holm"].get<double>(), 2 * first["max_loss_p"].get<double>(), 1e-12);
  EXPECT_GT(second["max_loss_p"].get<double>(), 0.9);
  const auto text = run({"0", "1", "4", "--max-loss", "0.3"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("p, Holm"), HasSubstr("loss <= 0.3: not shown at 95 %"),
                              HasSubstr("loss <= 0.3: holds at 95 %")));
}

TEST_F(CliCompare, MapsByTheirIds) {
  const Json named = json({"map:" + maps_[0].substr(0, 12), "map:" + maps_[1]});
  const Json numbered = json({"0", "1"});
  EXPECT_EQ(named[0]["metrics"], numbered[0]["metrics"]);
  EXPECT_EQ(named[0]["second"]["map"], "K4V4");
}

TEST_F(CliCompare, MistakesAreOneSentence) {
  const auto failed = [&](std::vector<std::string> words, const std::string& part) {
    const auto result = run(std::move(words));
    EXPECT_NE(result.code, 0);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(::testing::StartsWith("kvsweep: "), HasSubstr(part)));
  };
  failed({"0"}, "B is missing");
  failed({"0", "77"}, "study nightly/small has no trial 77; its trials are 0 to 5");
  failed({"0", "map:ffffffffffff"}, "no map whose id begins with ffffffffffff");
  failed({"baseline", "baseline"}, "compared with itself");
  failed({"baseline", "1"}, "were never measured on the same example");
  failed({"0", "1", "--max-loss", "-1"}, "--max-loss is \"-1\"");
}

}  // namespace
}  // namespace kvsweep
