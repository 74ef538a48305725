// The engine runner over a tiny random model. What the model says is noise; how it is asked,
// scored and reported is what is tested.
#include "worker/service/engine_runner.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.hpp"
#include "core/geometry.hpp"
#include "core/json.hpp"
#include "tests/support/temp_dir.hpp"
#include "worker/task/task.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::service {
namespace {

constexpr int kLayers = 2;

// One id per character, 67 in all, as many as the model has: <unk>, <s>, </s>, letters, digits,
// space and line break.
std::string character_tokenizer() {
  Json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  const std::string characters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n";
  for (const char c : characters) {
    const auto id = vocabulary.size();
    vocabulary[std::string(1, c)] = id;
  }
  Json special = Json::array();
  for (const auto& [content, id] : {std::pair{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}}) {
    special.push_back({{"id", id},
                       {"content", content},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
  }
  return Json{{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"added_tokens", special},
              {"normalizer", nullptr},
              {"pre_tokenizer", nullptr},
              {"post_processor", nullptr},
              {"decoder", {{"type", "Fuse"}}},
              {"model",
               {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", "<unk>"},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"vocab", vocabulary},
                {"merges", Json::array()}}}}
      .dump();
}

class EngineRunnerTest : public ::testing::Test {
 protected:
  EngineRunnerTest() {
    const std::filesystem::path tiny =
        std::filesystem::path(KVSWEEP_TESTS_DIR) / "worker/model/tiny/plain";
    std::filesystem::create_directories(model());
    std::filesystem::copy_file(tiny / "model.safetensors", model() + "/model.safetensors");
    Json config = *read_json_file((tiny / "config.json").string());
    config["max_position_embeddings"] = 4096;  // no weight depends on it
    dir_.write("model/config.json", config.dump());
    dir_.write("model/tokenizer.json", character_tokenizer());
    hash_ = *model_hash(model());
  }

  std::string model() const { return dir_.file("model"); }

  wire::Unit unit(RunMode mode, const char* pair, std::vector<int64_t> examples) const {
    return {.unit_id = "u",
            .model_dir = model(),
            .model_hash = hash_,
            .base = BaseType::fp16,
            .protocol = protocol_,
            .mode = mode,
            .maps = {uniform_map(*make_scheme({}), kLayers, *pair_from(pair))},
            .examples = std::move(examples)};
  }

  wire::UnitResult run(const wire::Unit& unit) {
    counters_.reset();
    return runner_.run(unit, counters_, cancel_);
  }

  std::vector<Measurement> measured(const wire::Unit& unit) {
    const wire::UnitResult result = run(unit);
    EXPECT_FALSE(result.failure) << result.failure->message;
    return result.failure ? std::vector<Measurement>{} : result.maps.at(0).measurements;
  }

  void expect_failure(const wire::Unit& unit, ErrorCode code,
                      const std::vector<std::string>& words) {
    const wire::UnitResult result = run(unit);
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->code, code) << result.failure->message;
    for (const std::string& word : words) {
      EXPECT_NE(result.failure->message.find(word), std::string::npos)
          << word << " in " << result.failure->message;
    }
  }

  test::TempDir dir_;
  TaskProtocol protocol_{.name = "word_problems",
                         .version = std::string(task_info("word_problems")->version),
                         .split = "search",
                         .shots = 1,
                         .max_new_tokens = 12};
  std::string hash_;
  UnitCounters counters_;
  std::atomic<bool> cancel_{false};
  EngineRunner runner_{{.threads = 1, .cache_budget_bytes = 64 << 20}};
};

TEST_F(EngineRunnerTest, DescribesTheTaskWithoutAModel) {
  wire::Unit work = unit(RunMode::generate, "baseline", {});
  work.kind = wire::UnitKind::describe;
  work.model_dir = "/nonexistent";
  const wire::UnitResult result = run(work);
  ASSERT_FALSE(result.failure) << result.failure->message;
  ASSERT_TRUE(result.description);
  const auto task = std::move(task::open_task(protocol_, {}).value());
  ASSERT_EQ(result.description->examples, task->size());
  for (const int64_t index : {int64_t{0}, task->size() - 1}) {
    EXPECT_EQ(result.description->example_hashes[index], task->example(index)->hash);
  }
  EXPECT_EQ(counters_.done, task->size());
}

// The baseline's text as draft, for one of two examples: the same results, and how it went.
TEST_F(EngineRunnerTest, DraftsChangeNothingThatIsMeasured) {
  const auto baseline = measured(unit(RunMode::generate, "baseline", {3, 7}));
  wire::Unit work = unit(RunMode::generate, "K8V8", {3, 7});
  const auto plain = measured(work);
  work.drafts[7] = baseline.at(1).tokens;
  const auto drafted = measured(work);
  ASSERT_EQ(drafted.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(drafted[i].tokens, plain[i].tokens);
    EXPECT_EQ(drafted[i].text, plain[i].text);
    EXPECT_EQ(drafted[i].exact_match, plain[i].exact_match);
    EXPECT_EQ(drafted[i].cache_bytes, plain[i].cache_bytes);
  }
  EXPECT_FALSE(drafted[0].draft.has_value());
  EXPECT_EQ(drafted[1].draft.has_value(), run(work).batch_invariant);
  work.drafts[3] = {66, 67};
  expect_failure(work, ErrorCode::bad_input, {"draft token 1 is 67"});
}

TEST_F(EngineRunnerTest, GeneratesAndScores) {
  const wire::Unit work = unit(RunMode::generate, "baseline", {3, 0, 7});
  const wire::UnitResult result = run(work);
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.model_hash, hash_);
  EXPECT_EQ(result.protocol_hash, protocol_hash(protocol_, RunMode::generate));
  ASSERT_EQ(result.maps.size(), 1u);
  EXPECT_EQ(result.maps[0].map_id, map_id(work.maps[0]));
  ASSERT_EQ(result.maps[0].measurements.size(), 3u);
  EXPECT_EQ(counters_.done, 3);
  EXPECT_EQ(counters_.total, 3);
  EXPECT_GT(counters_.tokens, 0);

  const auto task = std::move(task::open_task(protocol_, {}).value());
  const auto tokenizer = text::Tokenizer::load(model());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  for (size_t i = 0; i < 3; ++i) {
    const Measurement& m = result.maps[0].measurements[i];
    const task::Example example = *task->example(work.examples[i]);
    EXPECT_EQ(m.example, work.examples[i]);
    EXPECT_EQ(m.example_hash, example.hash);
    // One id per character of the prompt: the tokenizer adds nothing.
    EXPECT_EQ(m.prompt_tokens, static_cast<int64_t>(example.prompt.size()));
    EXPECT_GE(m.tokens.size(), 1u);
    EXPECT_LE(m.tokens.size(), 12u);
    EXPECT_EQ(m.output_tokens, static_cast<int64_t>(m.tokens.size()));
    EXPECT_EQ(m.text, task::cut_at_stops(*tokenizer->decode(m.tokens, true), example.stops));
    EXPECT_EQ(m.answer, task->score(example, m.text).answer);
    EXPECT_TRUE(m.exact_match.has_value());
    EXPECT_GT(m.cache_bytes, 0);
    EXPECT_FALSE(m.kl.has_value());
  }
}

// Teacher-forced on its own output, in its own cache, a model agrees with itself.
TEST_F(EngineRunnerTest, BaselineAgreesWithItself) {
  wire::Unit forced = unit(RunMode::forced, "baseline", {0, 1, 2, 5});
  for (const Measurement& m : measured(unit(RunMode::generate, "baseline", {0, 1, 2, 5}))) {
    forced.references[m.example] = {m.tokens};
  }
  for (const Measurement& m : measured(forced)) {
    EXPECT_EQ(m.token_agreement, 1.0);
    ASSERT_TRUE(m.kl.has_value());
    EXPECT_NEAR(*m.kl, 0, 1e-6);
    EXPECT_GT(*m.nll, 0);
    EXPECT_EQ(m.output_tokens, static_cast<int64_t>(forced.references[m.example].tokens.size()));
    EXPECT_FALSE(m.exact_match.has_value());
  }
  forced.maps = {uniform_map(*make_scheme({}), kLayers, *pair_from("K4V4"))};
  for (const Measurement& m : measured(forced)) EXPECT_GT(*m.kl, 0);
}

// Which slice an example was in changes nothing (design 4.6).
TEST_F(EngineRunnerTest, SlicesDoNotMatter) {
  const auto whole = measured(unit(RunMode::generate, "K8V4", {0, 1, 2, 3, 4, 5}));
  for (const Measurement& m : whole) {
    const Measurement alone = measured(unit(RunMode::generate, "K8V4", {m.example})).at(0);
    EXPECT_EQ(alone.tokens, m.tokens);
    EXPECT_EQ(alone.text, m.text);
    EXPECT_EQ(alone.cache_bytes, m.cache_bytes);
  }
}

TEST_F(EngineRunnerTest, SeveralMapsInOneUnit) {
  wire::Unit work = unit(RunMode::generate, "K8V8", {0, 1});
  work.maps.push_back(uniform_map(*make_scheme({}), kLayers, *pair_from("K4V4")));
  const wire::UnitResult result = run(work);
  ASSERT_FALSE(result.failure) << result.failure->message;
  ASSERT_EQ(result.maps.size(), 2u);
  EXPECT_EQ(result.maps[1].map_id, map_id(work.maps[1]));
  EXPECT_EQ(result.maps[1].measurements.size(), 2u);
  EXPECT_EQ(counters_.total, 4);
  EXPECT_EQ(counters_.done, 4);
}

TEST_F(EngineRunnerTest, AnotherModelUnderTheSamePathIsRefused) {
  wire::Unit work = unit(RunMode::generate, "K8V8", {0});
  work.model_hash = std::string(64, 'e');
  expect_failure(work, ErrorCode::bad_input, {hash_.substr(0, 12), "eeeeeeeeeeee", model()});
  // and the right one still runs
  EXPECT_EQ(measured(unit(RunMode::generate, "K8V8", {0})).size(), 1u);
}

TEST_F(EngineRunnerTest, MissingFolder) {
  wire::Unit work = unit(RunMode::generate, "K8V8", {0});
  work.model_dir = "/nonexistent";
  expect_failure(work, ErrorCode::bad_input, {"/nonexistent"});
}

TEST_F(EngineRunnerTest, TokenizerOfAnotherModel) {
  std::filesystem::copy_file(
      std::string(KVSWEEP_TESTS_DIR) + "/worker/text/data/tiny/tokenizer.json",
      model() + "/tokenizer.json", std::filesystem::copy_options::overwrite_existing);
  wire::Unit work = unit(RunMode::generate, "K8V8", {0});
  work.model_hash = *model_hash(model());
  expect_failure(work, ErrorCode::bad_input, {"269", "67"});  // 266 entries and 3 added ones
}

TEST_F(EngineRunnerTest, WrongInputs) {
  expect_failure(unit(RunMode::forced, "K8V8", {0}), ErrorCode::bad_input, {"example 0"});
  wire::Unit layers = unit(RunMode::generate, "K8V8", {0});
  layers.maps = {uniform_map(*make_scheme({}), kLayers + 1, *pair_from("K8V8"))};
  expect_failure(layers, ErrorCode::bad_input, {"3", "2"});
  wire::Unit data = unit(RunMode::generate, "K8V8", {0});
  data.protocol = {.name = "gsm8k",
                   .version = std::string(task_info("gsm8k")->version),
                   .split = "test",
                   .max_new_tokens = 4};
  expect_failure(data, ErrorCode::bad_input, {"KVSWEEP_DATA_DIR"});
  expect_failure(unit(RunMode::generate, "K8V8", {int64_t{1} << 40}), ErrorCode::bad_input, {});
}

TEST_F(EngineRunnerTest, CancelLeavesAsPreempted) {
  measured(unit(RunMode::generate, "K8V8", {0}));
  cancel_ = true;
  expect_failure(unit(RunMode::generate, "K8V8", {0, 1, 2}), ErrorCode::preempted, {});
}

}  // namespace
}  // namespace kvsweep::service
