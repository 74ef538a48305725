// Drafts change no bit of any result, whatever they say and however many tokens are verified.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/worker/engine/support.hpp"
#include "worker/engine/batch_runner.hpp"
#include "worker/engine/layouts.hpp"
#include "worker/engine/scoring.hpp"

namespace kvsweep::engine {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int kLayers = 3;
constexpr int64_t kVocab = 67;
constexpr int32_t kEos = 2;

// Greedy decoding that keeps every row of logits a token was chosen from.
class Recorder final : public JobHandler {
 public:
  Recorder(const std::vector<Job>& jobs, int64_t vocab) : vocab_(vocab) {
    for (const Job& job : jobs) {
      first_.push_back(job.prompt_tokens - 1);
      most_.push_back(static_cast<size_t>(job.most_tokens - job.prompt_tokens + 1));
      rows_.emplace_back(most_.back());
      text.emplace_back();
      stats.emplace_back();
    }
  }

  Status row(int64_t job, int64_t position, const float* logits) override {
    if (const auto chosen = argmax(logits, vocab_); !chosen.ok()) return chosen.error();
    rows_[job].at(position - first_[job]).assign(logits, logits + vocab_);
    return {};
  }
  std::optional<int32_t> advance(int64_t job) override {
    const std::vector<float>& row = rows_[job].at(text[job].size());
    text[job].push_back(argmax(row.data(), vocab_).value());
    if (text[job].back() == kEos || text[job].size() == most_[job]) return std::nullopt;
    return text[job].back();
  }
  void finished(int64_t job, const JobStats& s) override {
    stats[job] = s;
    rows_[job].resize(text[job].size());
  }

  const std::vector<std::vector<float>>& rows(size_t job) const { return rows_[job]; }

  std::vector<Tokens> text;
  std::vector<JobStats> stats;

 private:
  int64_t vocab_;
  std::vector<int64_t> first_;
  std::vector<size_t> most_;
  std::vector<std::vector<std::vector<float>>> rows_;  // [job][token][vocab]
};

double top_gap(std::vector<float> row) {
  std::nth_element(row.begin(), row.begin() + 1, row.end(), std::greater<>());
  return row[0] - row[1];
}

// Says where two runs part, and how close the choice was there.
void expect_equal(const Recorder& got, size_t job, const Recorder& want, size_t at) {
  EXPECT_EQ(got.text[job], want.text[at]);
  EXPECT_EQ(got.stats[job].cache_bytes, want.stats[at].cache_bytes);
  const size_t tokens = std::min(got.rows(job).size(), want.rows(at).size());
  for (size_t i = 0; i < tokens; ++i) {
    if (got.rows(job)[i] == want.rows(at)[i]) continue;
    ADD_FAILURE() << "logits of token " << i << " differ by "
                  << test::largest_difference(got.rows(job)[i], want.rows(at)[i])
                  << ", where the two best are " << top_gap(want.rows(at)[i]) << " apart";
    return;
  }
}

Recorder run_jobs(model::Model& model, std::vector<Job> jobs, RunnerOptions options) {
  cache::Pool pool(int64_t{1} << 30);
  Recorder recorder(jobs, kVocab);
  const Status status = BatchRunner(model, pool, std::move(options)).run(std::move(jobs), recorder);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return recorder;
}

PrecisionMap map_of(SchemeOptions options, const std::string& pair) {
  return uniform_map(make_scheme(options).value(), kLayers, pair_from(pair).value());
}

std::vector<PrecisionMap> maps() {
  std::vector<PrecisionMap> out = {test::make_map("baseline", kLayers)};
  out.push_back(map_of({.name = "per-token"}, "K4V2"));
  out.push_back(map_of({.name = "per-token", .residual = 9, .sinks = 3}, "K2V2"));
  out.push_back(map_of({.name = "per-token", .prefill = Prefill::exact}, "K2V4"));
  out.push_back(map_of({.name = "kivi"}, "K4V2"));
  out.push_back(map_of({.name = "kivi", .residual = 64, .sinks = 4}, "K2V2"));
  out.push_back(map_of({.name = "kivi", .prefill = Prefill::stepwise}, "K4V4"));
  out.push_back(map_of({.name = "kivi", .hadamard = Hadamard::both}, "K3V3"));
  out.push_back(map_of({.name = "kvmix"}, "K2V4"));
  out.push_back(map_of({.name = "kvmix", .prefill = Prefill::stepwise}, "K4V2"));
  out.push_back(map_of({.name = "kvmix-total"}, "K4V2"));
  out.push_back(map_of({.name = "fp8"}, "Kfp8Vfp8"));
  out.push_back(test::make_map("kvmix-11pack", kLayers));
  PrecisionMap mixed = map_of({.name = "kivi"}, "K8V2");
  mixed.layers[0] = LayerPairs::of_heads({{Codec::int8, Codec::int2}, {Codec::int2, Codec::base}});
  mixed.layers[1] = {};
  out.push_back(mixed);
  return out;
}

// What a draft may be, seen from the text that decoding gives.
const char* const kKinds[] = {"right",     "wrong",    "wrong once", "inserted", "removed",
                              "too short", "too long", "ends early", "nonsense"};

Tokens draft_of(const std::string& kind, const Tokens& text, uint64_t seed) {
  std::mt19937_64 rng(seed);
  const auto other = [&](int32_t token) { return static_cast<int32_t>((token + 5) % kVocab); };
  const auto at = static_cast<ptrdiff_t>(rng() % text.size());
  Tokens draft = text;
  if (kind == "wrong") draft[0] = other(draft[0]);
  if (kind == "wrong once") draft[at] = other(draft[at]);
  if (kind == "inserted") draft.insert(draft.begin() + at, {7, 8, 9});
  if (kind == "removed") draft.erase(draft.begin() + at);
  if (kind == "too short") draft.resize(text.size() / 2);
  if (kind == "too long") draft.insert(draft.end(), 100, 11);
  if (kind == "ends early") draft[at] = kEos;
  if (kind == "nonsense") draft = test::random_tokens(90, kVocab, seed);
  return draft;
}

class Drafts : public testing::Test {
 protected:
  void SetUp() override {
    model_ = model::load_model(test::tiny_dir("untied_llama3"), {1}).value();
    if (!model_->batch_invariant()) GTEST_SKIP() << "this processor's GEMM is not batch-invariant";
  }

  // Prompts of which some begin alike, one is a single token, and some are equal.
  static std::vector<Job> jobs_under(const Layouts& layouts, size_t map) {
    const Tokens shots = test::random_tokens(60, kVocab, 1);
    std::vector<Job> jobs;
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      Job job;
      job.tokens =
          i % 3 == 0 ? shots : test::random_tokens(1 + 13 * static_cast<int64_t>(i), kVocab, i);
      if (i == 3) job.tokens.push_back(5);
      if (i == 4) job.tokens = {4};
      job.prompt_tokens = static_cast<int64_t>(job.tokens.size());
      job.first_logit = job.prompt_tokens - 1;
      job.most_tokens = job.prompt_tokens + 90 - static_cast<int64_t>(i);
      jobs.push_back(layouts.under(map, std::move(job)));
    }
    return jobs;
  }

  std::unique_ptr<model::Model> model_;
};

// Every sequence alone, token by token, against the same with drafts: alone, in a batch of one map,
// and in one of all maps.
TEST_F(Drafts, ChangeNoBit) {
  const Layouts layouts(maps(), model_->geometry(), BaseType::fp16);
  std::vector<Job> all;
  std::vector<Recorder> plain;
  for (size_t map = 0; map < maps().size(); ++map) {
    std::vector<Job> jobs = jobs_under(layouts, map);
    for (size_t i = 0; i < jobs.size(); ++i) {
      RunnerOptions lone;
      lone.max_batch = 1;
      lone.share_prompts = false;
      plain.push_back(run_jobs(*model_, {jobs[i]}, lone));
      jobs[i].draft = draft_of(kKinds[i], plain.back().text[0], 100 * map + i);
    }
    all.insert(all.end(), jobs.begin(), jobs.end());
  }
  const size_t kinds = std::size(kKinds);
  for (const auto& [batch, verify] : std::vector<std::pair<int, std::optional<int64_t>>>{
           {1, 1}, {1, 40}, {50, 7}, {12, 63}, {9, std::nullopt}}) {
    RunnerOptions options;
    options.max_batch = batch;
    options.prefill_chunk = 64;
    options.draft_tokens = verify;
    const Recorder drafted = run_jobs(*model_, all, options);
    int64_t rejected = 0;
    for (size_t j = 0; j < all.size(); ++j) {
      SCOPED_TRACE("map " + std::to_string(j / kinds) + ", draft " + kKinds[j % kinds] +
                   ", batch " + std::to_string(batch) + ", verified " +
                   std::to_string(verify.value_or(-1)));
      expect_equal(drafted, j, plain[j], 0);
      ASSERT_TRUE(drafted.stats[j].draft.has_value());
      const DraftUse& use = *drafted.stats[j].draft;
      rejected += use.proposed - use.accepted;
      const auto text = static_cast<int64_t>(plain[j].text[0].size());
      if (kKinds[j % kinds] == std::string("right") && verify && text > 3) {
        EXPECT_EQ(use.accepted, use.proposed);
        EXPECT_EQ(use.first_difference, -1);
        // The first token may come from a shared prompt, the last is never proposed.
        EXPECT_GE(use.accepted, (text - 3) * *verify / (*verify + 1));
      }
      if (kKinds[j % kinds] == std::string("wrong")) {
        EXPECT_EQ(use.first_difference, 0);
      }
    }
    if (verify) {
      EXPECT_GT(rejected, 50);
    }
  }
}

// What codes its history again cannot be undone: it decodes as if there were no draft.
TEST_F(Drafts, AreLeftOutWhereHistoryIsCodedAgain) {
  const std::vector<PrecisionMap> some = {test::make_map("kvtuner", kLayers)};
  const Layouts layouts(some, model_->geometry(), BaseType::fp16);
  std::vector<Job> jobs = jobs_under(layouts, 0);
  const Recorder plain = run_jobs(*model_, jobs, {});
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i].draft = plain.text[i];
  RunnerOptions options;
  options.draft_tokens = 10;
  const Recorder drafted = run_jobs(*model_, jobs, options);
  for (size_t i = 0; i < jobs.size(); ++i) {
    expect_equal(drafted, i, plain, i);
    EXPECT_FALSE(drafted.stats[i].draft.has_value());
  }
}

// A model that overflows wherever one token is fed.
class Poisoned final : public model::Model {
 public:
  Poisoned(model::Model& model, int32_t token) : model_(model), token_(token) {}
  const ModelGeometry& geometry() const override { return model_.geometry(); }
  int64_t vocab_size() const override { return model_.vocab_size(); }
  bool batch_invariant() const override { return true; }
  bool lengths_agree(int64_t a, int64_t b) const override { return model_.lengths_agree(a, b); }
  bool has_key_bias() const override { return model_.has_key_bias(); }
  Status forward(const model::Batch& batch, model::AttentionSink& sink,
                 model::LogitSink& logits) override {
    Poison poison(batch, sink, token_);
    return model_.forward(batch, poison, logits);
  }

 private:
  class Poison final : public model::AttentionSink {
   public:
    Poison(const model::Batch& batch, model::AttentionSink& sink, int32_t token)
        : batch_(batch), sink_(sink), token_(token) {}
    Status attend(const model::AttentionCall& call) override {
      const int64_t width = int64_t{call.kv_heads} * call.head_dim;
      keys_.assign(call.keys, call.keys + call.rows * width);
      for (int64_t row = 0; row < call.rows; ++row) {
        if (call.layer == 1 && batch_.tokens[row] == token_) keys_[row * width] = 1e30f;
      }
      model::AttentionCall poisoned = call;
      poisoned.keys = keys_.data();
      return sink_.attend(poisoned);
    }

   private:
    const model::Batch& batch_;
    model::AttentionSink& sink_;
    int32_t token_;
    std::vector<float> keys_;
  };
  model::Model& model_;
  int32_t token_;
};

// A draft that would lead to an error, in a batch with others that decode and prefill.
TEST_F(Drafts, ThatLeadToAnErrorAreUndone) {
  const Layouts layouts(maps(), model_->geometry(), BaseType::fp16);
  for (size_t map = 0; map < maps().size(); ++map) {
    SCOPED_TRACE("map " + std::to_string(map));
    std::vector<Job> jobs = jobs_under(layouts, map);
    const Recorder plain = run_jobs(*model_, jobs, {});
    Tokens used;
    for (size_t i = 0; i < jobs.size(); ++i) {
      used.insert(used.end(), plain.text[i].begin(), plain.text[i].end());
      used.insert(used.end(), jobs[i].tokens.begin(), jobs[i].tokens.end());
    }
    int32_t poison = kVocab - 1;
    while (poison > 0 && std::count(used.begin(), used.end(), poison) > 0) --poison;
    if (poison == 0) continue;  // every token occurs
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].draft = plain.text[i];
      if (i % 2 == 0) jobs[i].draft[jobs[i].draft.size() / 3] = poison;
    }
    Poisoned model(*model_, poison);
    RunnerOptions options;
    options.max_batch = 4;
    options.prefill_chunk = 20;
    options.draft_tokens = 12;
    const Recorder drafted = run_jobs(model, jobs, options);
    for (size_t i = 0; i < jobs.size(); ++i) expect_equal(drafted, i, plain, i);
  }
}

// --- the engine ---

SequenceRequest request_of(Tokens prompt, Tokens draft) {
  SequenceRequest request;
  request.prompt = std::move(prompt);
  request.max_new_tokens = 40;
  request.draft = std::move(draft);
  return request;
}

// Stops are asked in order, about the tokens that decoding chose.
TEST(EngineDrafts, StopsEndWhereTheyWould) {
  Engine engine = test::load_engine(test::tiny_dir("untied_llama3"));
  const PrecisionMap map = test::make_map("kivi-exact", engine.geometry().num_layers());
  const int64_t vocab = engine.vocab_size();
  const Tokens prompt = test::random_tokens(40, vocab, 3);
  const Tokens text = (*engine.run(map, {request_of(prompt, {})}, {}))[0].tokens;
  for (const size_t length : {1u, 2u, 17u, 40u}) {
    RunOptions run;
    size_t asked = 0;
    run.stop = [&](int64_t, const Tokens& tokens) {
      EXPECT_EQ(tokens.size(), ++asked);
      return tokens.size() == length;
    };
    const auto plain = engine.run(map, {request_of(prompt, {})}, run);
    asked = 0;
    const auto drafted = engine.run(map, {request_of(prompt, text)}, run);
    ASSERT_TRUE(plain.ok() && drafted.ok());
    EXPECT_EQ((*drafted)[0].tokens, (*plain)[0].tokens);
    EXPECT_EQ((*drafted)[0].cache_bytes, (*plain)[0].cache_bytes);
  }
}

// An end-of-sequence token that decoding chooses ends the text, and one in the draft the draft.
TEST(EngineDrafts, EndsOfSequence) {
  Engine engine = test::load_engine(test::tiny_dir("untied_llama3"));
  const PrecisionMap map = test::make_map("per-token", engine.geometry().num_layers());
  const Tokens prompt = test::random_tokens(30, engine.vocab_size(), 9);
  const Tokens text = (*engine.run(map, {request_of(prompt, {})}, {}))[0].tokens;
  for (const int32_t eos : {text[0], text[5], text.back(), int32_t{66}}) {
    RunOptions run;
    run.eos_ids = {eos};
    Tokens draft = text;
    draft[20] = eos;
    const auto plain = engine.run(map, {request_of(prompt, {})}, run);
    const auto drafted = engine.run(map, {request_of(prompt, draft)}, run);
    ASSERT_TRUE(plain.ok() && drafted.ok());
    EXPECT_EQ((*drafted)[0].tokens, (*plain)[0].tokens);
  }
}

TEST(EngineDrafts, RefusesWhatIsNoDraft) {
  Engine engine = test::load_engine(test::tiny_dir("untied_llama3"));
  const PrecisionMap map = test::make_map("per-token", engine.geometry().num_layers());
  const auto refused = [&](SequenceRequest request) {
    const auto result = engine.run(map, {std::move(request)}, {});
    EXPECT_FALSE(result.ok());
    if (result.ok()) return std::string();
    EXPECT_EQ(result.error().code, ErrorCode::bad_input);
    return result.error().message;
  };
  const auto last = static_cast<int32_t>(engine.vocab_size() - 1);
  EXPECT_NE(refused(request_of({1, 2}, {3, last + 1})).find("draft token 1 is"), std::string::npos);
  EXPECT_NE(refused(request_of({1, 2}, {-1})).find("draft token 0 is -1"), std::string::npos);
  SequenceRequest both = request_of({1, 2}, {3});
  both.reference = {4, 5};
  EXPECT_NE(refused(both).find("reference of 2 tokens and a draft of 1"), std::string::npos);
}

}  // namespace
}  // namespace kvsweep::engine
