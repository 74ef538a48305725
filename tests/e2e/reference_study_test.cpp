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

// Head 0 of the first four layers in 2 bits, the rest in 8: the model runs under it, the damage
// lies between that of the uniform maps, and a file that says the same map measures nothing anew.
TEST_F(ReferenceStudy, APairPerHeadRunsAndIsOneMapHoweverItIsWritten) {
  const auto evaluate = [&](const std::string& map) {
    return json({"evaluate",  "--model",       kModel,        "--map",    map,
                 "--task",    "word_problems", "--split",     "search",   "--shots",
                 "0",         "--examples",    "16",          "--metric", "kl",
                 "--context", "512",           "--workers",   "2",        "--threads",
                 "1",         "--db",          db("heads.db")});
  };
  const Json mixed = evaluate("uniform:K8V8,0-3.0=K2V2");
  EXPECT_EQ(mixed["map"], "K2V2|K8V8 x4, K8V8 x4");
  const Json whole = evaluate("uniform:K8V8");
  const Json least = evaluate("uniform:K2V2,4-7=K8V8");
  // Of 64 channels, 512 tokens and two sides: 64 - 16 bytes less per row, in four layers.
  EXPECT_EQ(mixed["bytes"].get<int64_t>(), whole["bytes"].get<int64_t>() - 4 * 2 * 512 * 48);
  const auto kl = [](const Json& run) { return run["results"][0]["value"].get<double>(); };
  EXPECT_LT(kl(whole), kl(mixed));
  EXPECT_LT(kl(mixed), kl(least));

  Json layers = Json::array();
  for (int i = 0; i < 8; ++i) {
    const Json heads = i < 4 ? Json({"two", "eight"}) : Json("eight");
    layers.push_back({{"index", i}, {"k", heads}, {"v", heads}});
  }
  const auto format = [](int bits) {
    return Json{{"codec", "affine-int"},
                {"bits", bits},
                {"axis", "token"},
                {"group", "head"},
                {"effective_bits", bits + 0.5}};
  };
  const Json file = {
      {"schema", "kvmap"},
      {"schema_version", 1},
      {"must_understand", {"formats", "layers", "head_formats"}},
      {"geometry", {{"num_layers", 8}, {"kv_heads", 2}, {"head_dim_k", 64}, {"head_dim_v", 64}}},
      {"formats", {{"two", format(2)}, {"eight", format(8)}}},
      {"policy", {{"residual_tokens", 0}, {"sink_tokens", 0}, {"prefill_quantized", true}}},
      {"layers", layers}};
  dir_.write("heads.kvmap.json", file.dump());
  const Json from_file = evaluate("heads.kvmap.json");
  EXPECT_EQ(from_file["map_id"], mixed["map_id"]);
  EXPECT_EQ(from_file["results"][0]["reused"], 16);
  EXPECT_EQ(kl(from_file), kl(mixed));

  const auto imported = run({"import", "heads.kvmap.json", "--model", kModel, "--db", db("i.db")});
  EXPECT_EQ(imported.code, 0) << imported.err;
  EXPECT_THAT(imported.out, ::testing::AllOf(HasSubstr("3.1  K8V8"), HasSubstr("4  K8V8"),
                                             HasSubstr("3.0  K2V2")));
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
