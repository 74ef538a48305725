// `kvsweep evaluate` on tasks that score given texts, with the real worker and the reference model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/file.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::HasSubstr;

class EvaluateKinds : public ::testing::Test {
 protected:
  EvaluateKinds() {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      text += "Tom has " + std::to_string(i) + " apples and buys 3 more.\n";
    }
    dir_.write("text.txt", text);
    dir_.write("quiz.jsonl", R"({"question": "Tom has 4 apples. He has", "choices": )"
                             R"(["4 apples.", "She of x"], "answer": 0})"
                             "\n");
  }

  test::CliResult evaluate(const std::string& tasks, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"evaluate",
                                      "--model",
                                      KVSWEEP_SOURCE_DIR "/models/reference",
                                      "--map",
                                      "uniform:K2V2",
                                      "--task",
                                      tasks,
                                      "--data-dir",
                                      dir_.path().string(),
                                      "--db",
                                      dir_.file("runs.db"),
                                      "--workers",
                                      "1"};
    words.insert(words.end(), more.begin(), more.end());
    test::CliCommand command;
    command.words = words;
    command.timeout_ms = 300000;
    return run_cli(command);
  }

  test::TempDir dir_;
};

TEST_F(EvaluateKinds, TextsAndChoicesInOneRun) {
  const auto run = evaluate("perplexity/text.txt,choice/quiz.jsonl",
                            {"--json", "--samples", dir_.file("samples.jsonl")});
  ASSERT_EQ(run.code, 1) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("less than one window of 2048"));

  const auto text = evaluate("perplexity/text.txt",
                             {"--json", "--length", "64", "--samples", dir_.file("samples.jsonl")});
  ASSERT_EQ(text.code, 0) << text.out << text.err;
  const Json row = Json::parse(text.out)["results"][0];
  EXPECT_EQ(row["metric"], "nll");
  EXPECT_EQ(row["perplexity"]["per"], "token");
  // Windows are equally long, so the mean over them is that over tokens.
  EXPECT_NEAR(row["perplexity"]["value"].get<double>(), std::exp(row["value"].get<double>()), 1e-6);
  EXPECT_NEAR(row["perplexity"]["baseline"].get<double>(), std::exp(row["baseline"].get<double>()),
              1e-6);
  EXPECT_NEAR(row["loss"].get<double>(), row["value"].get<double>() - row["baseline"].get<double>(),
              1e-9);
  EXPECT_NE(row["loss"], 0.0);

  std::vector<Json> samples;
  for (const std::string& line : split(*read_file(dir_.file("samples.jsonl")), '\n')) {
    if (!line.empty()) samples.push_back(Json::parse(line));
  }
  ASSERT_EQ(samples.size(), row["examples"].get<size_t>());
  double sum = 0;
  for (const Json& sample : samples) sum += sample["map"]["nll"].get<double>();
  EXPECT_NEAR(sum / static_cast<double>(samples.size()), row["value"].get<double>(), 1e-9);
}

TEST_F(EvaluateKinds, SeveralTasksShareARun) {
  const auto run = evaluate("choice/quiz.jsonl,word_perplexity/text.txt",
                            {"--metric", "nll", "--examples", "1", "--json"});
  // Without --length both have their own defaults.
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  const Json results = Json::parse(run.out)["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[0].contains("perplexity"));
  EXPECT_EQ(results[1]["perplexity"]["per"], "word");
  // Everything was recorded.
  const auto again = evaluate("choice/quiz.jsonl", {"--json"});
  const Json row = Json::parse(again.out)["results"][0];
  EXPECT_EQ(row["metric"], "exact_match");
  EXPECT_EQ(row["reused"], 1);
}

TEST_F(EvaluateKinds, AMetricThatATaskLacksIsRefused) {
  const auto run = evaluate("perplexity/text.txt", {"--metric", "exact_match"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("does not measure exact_match; allowed are nll"));
}

}  // namespace
}  // namespace kvsweep
