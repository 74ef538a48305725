// Maps from outside: what import and evaluate make of files that are right, wrong and broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/sample_database.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kTuner = R"(0: {nbits_key: 8, nbits_value: 8}
1: {nbits_key: 4, nbits_value: 4}
2: {nbits_key: 8, nbits_value: 4}
3: {nbits_key: 4, nbits_value: 2}
)";

class CliMaps : public ::testing::Test {
 protected:
  void SetUp() override {
    write_model("model", 4);
    write_model("other", 30);
  }

  void write_model(const std::string& name, int layers) {
    const Json config = {{"architectures", {"LlamaForCausalLM"}},
                         {"num_hidden_layers", layers},
                         {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},
                         {"hidden_size", 256},
                         {"max_position_embeddings", 8192}};
    dir_.write(name + "/config.json", config.dump());
    dir_.write(name + "/model.safetensors", "x");
    dir_.write(name + "/tokenizer.json", "{}");
  }

  test::CliResult run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--db", dir_.file("maps.db")});
    return test::run_cli(words);
  }

  // A kvmap file of the sample's trial 2, changed at `pointer`.
  std::string kvmap_with(const char* pointer, const Json& value) {
    const std::string db = dir_.file("sample.db");
    if (!std::filesystem::exists(db)) test::make_sample_database(db);
    const auto out = test::run_cli({"export", "--trial", "2", "--out", "-", "--db", db});
    EXPECT_EQ(out.code, 0) << out.err;
    Json document = *parse_json(out.out, "kvmap");
    const Json::json_pointer place(pointer);
    if (value.is_discarded()) {
      document[place.parent_pointer()].erase(std::stoul(place.back()));
    } else if (*pointer != '\0') {
      document[place] = value;
    }
    return dir_.write("changed.kvmap.json", document.dump(1));
  }

  test::TempDir dir_;
};

TEST_F(CliMaps, KvTunerFileNeedsAScheme) {
  const std::string file = dir_.write("layers.yaml", kTuner);
  const auto imported = run({"import", file, "--scheme", "kivi", "--group", "32"});
  EXPECT_EQ(imported.code, 0) << imported.err;
  EXPECT_THAT(imported.out, AllOf(HasSubstr("K8V8, K4V4, K8V4, K4V2"),
                                  HasSubstr("int8-channel-g32"), HasSubstr("int2-token-g32")));
  // With the model, bits per side are counted: int8 per channel in groups of 32 is 9.
  const auto counted = run({"import", file, "--scheme", "kivi", "--model", dir_.file("model")});
  EXPECT_THAT(counted.out, HasSubstr("9.00"));
}

TEST_F(CliMaps, AnotherModelsLayerCount) {
  const std::string file = dir_.write("layers.yaml", kTuner);
  const auto import = run({"import", file, "--scheme", "per-token", "--model", dir_.file("other")});
  EXPECT_EQ(import.code, 1);
  EXPECT_THAT(import.err, AllOf(StartsWith("kvsweep: "), HasSubstr("layers.yaml"),
                                HasSubstr("4 layers, but the model has 30")));
  const auto evaluate = run({"evaluate", "--model", dir_.file("other"), "--map", file, "--scheme",
                             "per-token", "--task", "word_problems"});
  EXPECT_EQ(evaluate.code, 1);
  EXPECT_THAT(evaluate.err, HasSubstr("4 layers, but the model has 30"));
}

TEST_F(CliMaps, BrokenMapsNameTheLayer) {
  struct Case {
    const char* text;
    const char* part;
  };
  const Case cases[] = {
      {"0: {nbits_key: 8, nbits_value: 8}\n2: {nbits_key: 4, nbits_value: 4}\n", "1"},
      {"0: {nbits_key: 8, nbits_value: 8}\n0: {nbits_key: 4, nbits_value: 4}\n", "0"},
      {"0: {nbits_key: 5, nbits_value: 8}\n", "5"},
      {"0: {nbits_key: 8}\n", "0"},
      {"", ""},
      {"just text", ""},
      {"{\"schema\": \"kvmap\"", ""},
      {"\xff\xfe", ""},
  };
  for (const Case& c : cases) {
    const auto result = run({"import", dir_.write("bad.yaml", c.text), "--scheme", "per-token"});
    EXPECT_EQ(result.code, 1) << c.text;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err,
                AllOf(StartsWith("kvsweep: "), HasSubstr("bad.yaml"), HasSubstr(c.part)));
  }
  const auto missing = run({"import", dir_.file("none.json")});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("none.json"));
}

TEST_F(CliMaps, DamagedKvmapIsRefused) {
  EXPECT_EQ(run({"import", kvmap_with("", 0)}).code, 0);
  const std::pair<const char*, Json> cases[] = {
      {"/layers/1", Json(Json::value_t::discarded)},  // a missing layer
      {"/layers/1/index", 0},                         // a duplicate
      {"/layers/1/k", "no-such-format"},
      {"/schema_version", 99},
      {"/geometry/num_layers", 5},
      {"/must_understand/0", "time-travel"},
  };
  for (const auto& [pointer, value] : cases) {
    const auto result = run({"import", kvmap_with(pointer, value)});
    EXPECT_EQ(result.code, 1) << pointer;
    EXPECT_THAT(result.err, AllOf(StartsWith("kvsweep: "), HasSubstr("changed.kvmap.json")));
  }
}

// A kvmap says its own scheme and heads: neither is overridden or contradicted in silence.
TEST_F(CliMaps, WhatAFileSaysIsNotIgnored) {
  const std::string kvmap = kvmap_with("/search", Json::object());
  EXPECT_THAT(run({"import", kvmap, "--scheme", "kivi"}).err, HasSubstr("says its own scheme"));
  const auto heads =
      run({"import", kvmap_with("/geometry/kv_heads", 4), "--model", dir_.file("model")});
  EXPECT_EQ(heads.code, 1);
  const auto other = run(
      {"import", kvmap_with("/model/hash", std::string(64, '0')), "--model", dir_.file("model")});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("changed.kvmap.json was made for another model"));
  EXPECT_THAT(heads.err, HasSubstr("made for another model"));
}

TEST_F(CliMaps, MapsByName) {
  // Everything about the map is judged before a worker is looked for.
  const auto evaluate = [&](const char* map) {
    return run({"evaluate", "--model", dir_.file("model"), "--map", map, "--task", "word_problems",
                "--worker-program", "/nonexistent/worker"});
  };
  EXPECT_THAT(evaluate("uniform:K4V2").err, HasSubstr("/nonexistent/worker does not exist"));
  EXPECT_THAT(evaluate("baseline").err, HasSubstr("/nonexistent/worker does not exist"));
  EXPECT_THAT(evaluate("uniform:K4V5").err, HasSubstr("pair \"K4V5\" is not known"));
  EXPECT_THAT(evaluate("uniform:").err, HasSubstr("pair \"\" is not known"));
  EXPECT_THAT(evaluate("nowhere.json").err, HasSubstr("nowhere.json"));
}

TEST_F(CliMaps, TasksAndMetricsAreChecked) {
  const auto evaluate = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"evaluate", "--model", dir_.file("model"), "--map",
                                      "baseline"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = run(words);
    EXPECT_EQ(result.code, 1);
    return result.err;
  };
  EXPECT_THAT(evaluate({"--task", "gsm9k"}), HasSubstr("task \"gsm9k\" is not known"));
  EXPECT_THAT(evaluate({"--task", "gsm8k", "--split", "dev"}), HasSubstr("no split \"dev\""));
  EXPECT_THAT(evaluate({"--task", "gsm8k", "--metric", "exact_match,klo"}),
              HasSubstr("metric \"klo\" is not known"));
  EXPECT_THAT(evaluate({"--task", "gsm8k", "--seed", "4"}), HasSubstr("seed"));
  EXPECT_THAT(evaluate({"--task", "gsm8k", "--scheme", "kivvi"}), HasSubstr("did you mean kivi?"));
}

}  // namespace
}  // namespace kvsweep
