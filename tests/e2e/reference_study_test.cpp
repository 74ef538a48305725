// One study of the model that ships with the project, with the real programs and nothing between:
// kvsweep, two kvsweep-worker processes, ZeroMQ, inference over a packed cache, SQLite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::HasSubstr;

const std::string kModel = KVSWEEP_SOURCE_DIR "/models/reference";

class ReferenceStudy : public ::testing::Test {
 protected:
  ReferenceStudy() {
    dir_.write("study.yaml", "name: small\nmodel: " + kModel +
                                 "\nsearch: {trials: 10, population: 6, groups: 4, seed: 3, "
                                 "candidates: [KV8, KV4, KV2]}\n"
                                 "at: {context: 512}\n"
                                 "objective_task: {name: word_problems, split: search, shots: 0, "
                                 "examples: 24, metric: exact_match}\n"
                                 "report_tasks: [{name: recall, split: report, length: 128, "
                                 "examples: 8, metric: exact_match}]\n");
  }

  std::string db(const std::string& name = "study.db") const { return dir_.file(name); }

  test::CliResult run(std::vector<std::string> words) const {
    test::CliCommand command;
    command.words = std::move(words);
    command.folder = dir_.path().string();
    command.timeout_ms = 280'000;
    return test::run_cli(command);
  }

  Json json(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const auto result = run(std::move(words));
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }

  test::CliResult tune() const {
    return run({"tune", "study.yaml", "--db", db(), "--workers", "2", "--threads", "1"});
  }

  test::TempDir dir_;
};

TEST_F(ReferenceStudy, AccuracyFallsWithTheBitsAndTheExportedMapMeasuresTheSame) {
  const auto first = tune();
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("10 of 10 trials"));

  const Json front = json({"front", "--db", db()});
  const Json& baseline = front["baseline"];
  EXPECT_GE(baseline["metric"].get<double>(), 0.85);
  double worst = 1;
  for (const Json& uniform : front["uniform"]) {
    if (uniform["map"] == "K2V2") worst = uniform["metric"].get<double>();
    if (uniform["map"] == "K8V8") {
      EXPECT_GE(uniform["metric"].get<double>(), 0.85);
    }
  }
  EXPECT_LE(worst, 0.5);
  const Json& held_out = front["held_out"][0];
  EXPECT_EQ(held_out["task"], "recall");
  for (const Json& trial : held_out["trials"]) {
    EXPECT_LE(trial["loss_95"][0].get<double>(), trial["loss"].get<double>());
    EXPECT_GE(trial["loss_95"][1].get<double>(), trial["loss"].get<double>());
  }

  // Nothing is left to do, so no worker starts; every number stays.
  const auto again = tune();
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);

  // The cheapest member, from its file, in a database that has never seen it.
  const Json& cheapest = front["front"][0];
  const std::string number = std::to_string(cheapest["number"].get<int64_t>());
  ASSERT_EQ(
      run({"export", "--db", db(), "--trial", number, "--format", "kvmap", "--out", "m.json"}).code,
      0);
  const Json measured = json(
      {"evaluate",    "--model",   kModel,    "--map",     "m.json",     "--task", "word_problems",
       "--split",     "search",    "--shots", "0",         "--examples", "24",     "--metric",
       "exact_match", "--workers", "2",       "--threads", "1",          "--db",   db("again.db")});
  EXPECT_EQ(measured["map_id"], cheapest["map_id"]);
  EXPECT_EQ(measured["results"][0]["value"], cheapest["metric"]);
  EXPECT_EQ(measured["results"][0]["loss"], cheapest["loss"]);
}

TEST_F(ReferenceStudy, PrintedExamplesAreThoseThatAreMeasured) {
  const auto printed =
      run({"data", "print", "recall", "--split", "report", "--count", "2", "--length", "64"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  const Json example = Json::parse(printed.out.substr(0, printed.out.find('\n')));
  EXPECT_THAT(example["prompt"].get<std::string>(), HasSubstr("What is the code of"));
  const auto wrong = run({"data", "print", "recall", "--length", "5"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("length is 5 tokens; allowed are 34 to 1078"));
  const auto generated = run({"data", "generate", "poems"});
  EXPECT_EQ(generated.code, 1);
  EXPECT_THAT(generated.err, HasSubstr("allowed are drills, recall, word_problems"));
}

}  // namespace
}  // namespace kvsweep
