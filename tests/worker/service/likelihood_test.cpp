// Log-likelihoods as the engine runner measures them: against the engine's own logits in 64 bits,
// and against transformers and lm-eval on SmolLM2 (make_likelihood_goldens.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "core/file.hpp"
#include "core/geometry.hpp"
#include "core/json.hpp"
#include "core/study_spec.hpp"
#include "core/text.hpp"
#include "tests/support/temp_dir.hpp"
#include "worker/engine/engine.hpp"
#include "worker/service/engine_runner.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::service {
namespace {

constexpr const char* kReference = KVSWEEP_SOURCE_DIR "/models/reference";

class Runner {
 public:
  Runner(std::string model, const std::string& data_dir)
      : model_(std::move(model)),
        hash_(*model_hash(model_)),
        runner_({.threads = 1, .cache_budget_bytes = 256 << 20, .data_dir = data_dir}) {}

  wire::UnitResult run(const TaskSpec& spec, const std::string& pair, int64_t examples) {
    wire::Unit unit;
    unit.model_dir = model_;
    unit.model_hash = hash_;
    unit.base = BaseType::fp32;
    unit.protocol = spec.protocol;
    unit.mode = mode_of(spec.protocol, spec.metric);
    const int layers = read_geometry(model_)->num_layers();
    unit.maps = {uniform_map(*make_scheme({}), layers, *pair_from(pair))};
    unit.examples.resize(static_cast<size_t>(examples));
    std::iota(unit.examples.begin(), unit.examples.end(), 0);
    UnitCounters counters;
    const std::atomic<bool> cancel{false};
    return runner_.run(unit, counters, cancel);
  }

  std::vector<Measurement> measured(const TaskSpec& spec, const std::string& pair,
                                    int64_t examples) {
    const wire::UnitResult result = run(spec, pair, examples);
    EXPECT_FALSE(result.failure) << result.failure->message;
    return result.failure ? std::vector<Measurement>{} : result.maps.at(0).measurements;
  }

 private:
  std::string model_;
  std::string hash_;
  EngineRunner runner_;
};

// log p of tokens[at], at = from..end, given all before it, from logits in 64 bits.
double log_likelihood(engine::Engine& engine, const std::vector<int32_t>& tokens, size_t from) {
  const PrecisionMap map = baseline_map(*make_scheme({}), engine.geometry().num_layers());
  const std::vector<float> logits = *engine.logits(map, tokens, BaseType::fp32, 0);
  const auto vocab = static_cast<size_t>(engine.vocab_size());
  double total = 0;
  for (size_t at = from; at < tokens.size(); ++at) {
    const float* row = logits.data() + (at - 1) * vocab;
    double sum = 0;
    for (size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(row[i]));
    total += static_cast<double>(row[tokens[at]]) - std::log(sum);
  }
  return total;
}

Json question(const std::string& text, const std::vector<std::string>& choices, int answer) {
  return {{"question", text}, {"choices", choices}, {"answer", answer}};
}

class LikelihoodTest : public ::testing::Test {
 protected:
  LikelihoodTest() {
    std::string lines;
    const std::vector<std::string> choices = {"He has 9 apples.", "She", "He has 7 apples left."};
    for (const int n : {4, 5, 6}) {
      lines += question("Question: Tom has " + std::to_string(n) +
                            " apples and buys 3 more. How many apples does Tom have?\nAnswer:",
                        choices, n % 3)
                   .dump() +
               "\n";
    }
    dir_.write("quiz.jsonl", lines);
    dir_.write("text.txt",
               "Tom has 4 apples and buys 3 more.\nThe farmer has 12 eggs and sells 5 of them.\n"
               "Question: How many eggs does the farmer have left?\nAnswer: 12 - 5 = 7.\n#### 7\n");
  }
  TaskSpec task(const std::string& name, std::optional<int64_t> length = std::nullopt) const {
    return *make_task({.name = name, .length = length});
  }

  test::TempDir dir_;
  Runner runner_{kReference, dir_.path().string()};
  engine::Engine engine_ = *engine::Engine::load(kReference, {});
  text::Tokenizer tokenizer_ = *text::Tokenizer::load(kReference);
};

TEST_F(LikelihoodTest, ChoicesEqualTheLogitsIn64Bits) {
  const auto found = runner_.measured(task("choice/quiz.jsonl"), "baseline", 3);
  ASSERT_EQ(found.size(), 3u);
  const std::vector<Json> lines = [&] {
    std::vector<Json> all;
    for (const std::string& line : split(*read_file(dir_.file("quiz.jsonl")), '\n')) {
      if (!line.empty()) all.push_back(Json::parse(line));
    }
    return all;
  }();
  for (size_t i = 0; i < found.size(); ++i) {
    const Json figures = Json::parse(found[i].text);
    const std::string text = lines[i]["question"];
    const size_t before = tokenizer_.encode(text, true)->size();
    std::vector<double> all;
    std::vector<double> per_character;
    for (size_t c = 0; c < 3; ++c) {
      const std::string choice = lines[i]["choices"][c];
      const auto tokens = *tokenizer_.encode(text + " " + choice, true);
      const double expected = log_likelihood(engine_, tokens, before);
      EXPECT_NEAR(figures["log_likelihoods"][c].get<double>(), expected, 1e-3);
      EXPECT_EQ(figures["tokens"][c], tokens.size() - before);
      all.push_back(expected);
      per_character.push_back(expected / static_cast<double>(choice.size()));
    }
    const auto best = std::max_element(all.begin(), all.end()) - all.begin();
    const auto best_each =
        std::max_element(per_character.begin(), per_character.end()) - per_character.begin();
    const int gold = lines[i]["answer"];
    EXPECT_EQ(found[i].answer, lines[i]["choices"][static_cast<size_t>(best)]);
    EXPECT_EQ(found[i].exact_match, best == gold ? 1 : 0);
    EXPECT_EQ(found[i].strict_match, best_each == gold ? 1 : 0);
    EXPECT_NEAR(*found[i].nll,
                -all[static_cast<size_t>(gold)] / figures["tokens"][gold].get<double>(), 1e-3);
    EXPECT_FALSE(found[i].kl.has_value());
  }
}

// The cache is really in between: two bits change what a text is worth, sixteen hardly.
TEST_F(LikelihoodTest, TwoBitsChangeLogLikelihoods) {
  for (const TaskSpec& spec : {task("choice/quiz.jsonl"), task("perplexity/text.txt", 32)}) {
    const auto exact = runner_.measured(spec, "baseline", 1).at(0);
    const auto eight = runner_.measured(spec, "K8V8", 1).at(0);
    const auto two = runner_.measured(spec, "K2V2", 1).at(0);
    EXPECT_NEAR(*eight.nll, *exact.nll, 0.01 * *exact.nll) << spec.protocol.name;
    EXPECT_GT(std::abs(*two.nll - *exact.nll), 10 * std::abs(*eight.nll - *exact.nll))
        << spec.protocol.name;
    EXPECT_NE(two.text, exact.text);
    EXPECT_LT(two.cache_bytes, exact.cache_bytes);
  }
}

TEST_F(LikelihoodTest, WindowsEqualTheLogitsIn64Bits) {
  const std::string text = *read_file(dir_.file("text.txt"));
  const auto whole = *tokenizer_.encode(text, true);
  const std::vector<int32_t> first(whole.begin(), whole.begin() + 32);
  const auto halves = runner_.measured(task("half_perplexity/text.txt", 32), "baseline", 1).at(0);
  EXPECT_EQ(halves.output_tokens, 15);
  EXPECT_NEAR(*halves.nll, -log_likelihood(engine_, first, 17) / 15, 1e-4);
  EXPECT_EQ(Json::parse(halves.text)["tokens"], 15);

  // Rows joined by two line feeds, which come on top of their own.
  std::string rows;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) rows += (rows.empty() ? "" : "\n\n") + line + "\n";
  }
  auto joined = *tokenizer_.encode(rows, true);
  joined.resize(32);
  const auto paper = runner_.measured(task("perplexity/text.txt", 32), "baseline", 1).at(0);
  EXPECT_EQ(paper.output_tokens, 31);
  EXPECT_NEAR(*paper.nll, -log_likelihood(engine_, joined, 1) / 31, 1e-4);

  // Every token once, the first after the text's start; windows of 16 tokens after one token each.
  const auto page = runner_.measured(task("word_perplexity/text.txt", 16), "baseline", 1).at(0);
  const auto ids = *tokenizer_.encode(text, false);
  double total = 0;
  for (size_t begin = 0; begin < ids.size(); begin += 16) {
    const size_t end = std::min(begin + 16, ids.size());
    const size_t from = end < 16 ? 0 : end - 16;
    std::vector<int32_t> window = {from == 0 ? *tokenizer_.text_start() : ids[from - 1]};
    window.insert(window.end(), ids.begin() + static_cast<std::ptrdiff_t>(from),
                  ids.begin() + static_cast<std::ptrdiff_t>(end));
    total += log_likelihood(engine_, window, begin - from + 1);
  }
  EXPECT_EQ(page.output_tokens, static_cast<int64_t>(ids.size()));
  EXPECT_NEAR(*page.nll, -total / static_cast<double>(ids.size()), 1e-4);
  // 35 runs without white space and the empty one behind the last line feed.
  EXPECT_EQ(Json::parse(page.text)["words"], 36);
}

TEST_F(LikelihoodTest, OtherModesAreRefused) {
  TaskSpec forced = task("choice/quiz.jsonl");
  forced.metric = Metric::kl;
  const auto result = runner_.run(forced, "baseline", 1);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->message,
            "task choice/quiz.jsonl cannot be run in mode forced; its own is choices");
}

// golden/likelihoods.json: SmolLM2 in transformers, windows and sums by lm-eval.
class SmolLikelihood : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* variable = std::getenv("KVSWEEP_DATA_DIR");
    data_ = variable != nullptr ? variable : "";
    model_ = KVSWEEP_SOURCE_DIR "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (!std::filesystem::exists(data_ + "/wikitext2/wiki.test.raw")) {
      GTEST_SKIP() << "no wikitext2/wiki.test.raw: set KVSWEEP_DATA_DIR";
    }
    if (!std::filesystem::exists(model_)) GTEST_SKIP() << "no " << model_;
    golden_ = read_json_file(KVSWEEP_TESTS_DIR "/worker/service/golden/likelihoods.json").value();
    // A page of few lines, so that the test is short.
    std::vector<std::string> lines = split(*read_file(data_ + "/wikitext2/wiki.test.raw"), '\n');
    lines.resize(golden_["excerpt_lines"].get<size_t>());
    dir_.write("excerpt.raw", join(lines, "\n"));
    dir_.write("quiz.jsonl", golden_["quiz"].get<std::string>());
    std::filesystem::create_symlink(data_ + "/wikitext2", dir_.file("wikitext2"));
  }

  std::string data_;
  std::string model_;
  Json golden_;
  test::TempDir dir_;
};

TEST_F(SmolLikelihood, EqualsTransformersAndLmEval) {
  Runner runner(model_, dir_.path().string());
  for (const Json& one : golden_["texts"]) {
    const auto expected = one["nll"].get<std::vector<double>>();
    const TaskSpec spec = *make_task({.name = one["task"], .length = one["length"]});
    const auto found = runner.measured(spec, "baseline", static_cast<int64_t>(expected.size()));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(*found[i].nll, expected[i], 1e-3 * expected[i]) << one["task"] << " " << i;
      EXPECT_EQ(found[i].output_tokens, one["tokens"][i]) << one["task"] << " " << i;
      if (one.contains("words")) {
        EXPECT_EQ(Json::parse(found[i].text)["words"], one["words"][i]);
      }
    }
  }
  const Json& quiz = golden_["choices"];
  const auto found = runner.measured(*make_task({.name = "choice/quiz.jsonl"}), "baseline",
                                     static_cast<int64_t>(quiz.size()));
  ASSERT_EQ(found.size(), quiz.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Json figures = Json::parse(found[i].text);
    for (size_t c = 0; c < quiz[i]["log_likelihoods"].size(); ++c) {
      const double expected = quiz[i]["log_likelihoods"][c];
      EXPECT_NEAR(figures["log_likelihoods"][c].get<double>(), expected, 1e-3 * -expected);
      EXPECT_EQ(figures["greedy"][c], quiz[i]["greedy"][c]);
    }
    EXPECT_EQ(found[i].exact_match, quiz[i]["acc"].get<double>());
    EXPECT_EQ(found[i].strict_match, quiz[i]["acc_norm"].get<double>());
  }
}

}  // namespace
}  // namespace kvsweep::service
