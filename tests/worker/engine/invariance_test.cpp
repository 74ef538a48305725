// Results must not depend on what else runs: bit for bit, batched or alone, chunked or not.
#include <gtest/gtest.h>

#include <memory>

#include "tests/worker/engine/support.hpp"

namespace kvsweep {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;

std::unique_ptr<model::Model> load(const std::string& dir, int threads) {
  auto loaded = model::load_model(dir, {threads});
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  return std::move(loaded).value();
}

// Nine sequences of unlike lengths, the first being the one that is watched.
Sequences nine(int64_t vocab, int64_t longest) {
  Sequences out;
  for (const int64_t length : {longest, int64_t{1}, int64_t{2}, longest / 2, int64_t{31},
                               int64_t{33}, int64_t{65}, longest - 1, int64_t{7}}) {
    out.push_back(test::random_tokens(length, vocab, 50 + out.size()));
  }
  return out;
}

struct Watched {
  std::string dir;
  int64_t longest = 0;
};

void expect_equal_logits(const Watched& watched, const std::string& kind) {
  const auto model = load(watched.dir, 1);
  if (!model->batch_invariant()) GTEST_SKIP() << "this processor's GEMM is not batch-invariant";
  test::BatchSpec spec;
  spec.map = test::make_map(kind, model->geometry().num_layers());
  const Sequences all = nine(model->vocab_size(), watched.longest);
  spec.chunk = watched.longest;
  const auto alone = test::batch_logits(*model, spec, {all[0]})[0];
  for (const int64_t chunk : {1, 7, 256}) {
    spec.chunk = chunk;
    const auto chunked = test::batch_logits(*model, spec, {all[0]})[0];
    EXPECT_TRUE(chunked == alone) << kind << ", chunk " << chunk << ": largest difference "
                                  << test::largest_difference(chunked, alone);
  }
  spec.chunk = 100;
  for (const Sequences& batch : {all, Sequences(all.rbegin(), all.rend())}) {
    const bool reversed = batch.front() != all.front();
    const auto logits = test::batch_logits(*model, spec, batch);
    const auto& mine = reversed ? logits.back() : logits.front();
    EXPECT_TRUE(mine == alone) << kind << ", in a batch: largest difference "
                               << test::largest_difference(mine, alone);
  }
}

void expect_equal_threads(const Watched& watched) {
  test::BatchSpec spec;
  const auto one = load(watched.dir, 1);
  spec.map = test::make_map("kivi", one->geometry().num_layers());
  const Sequences all = nine(one->vocab_size(), watched.longest);
  const auto single = test::batch_logits(*one, spec, all);
  const auto two = load(watched.dir, 2);
  EXPECT_TRUE(test::batch_logits(*two, spec, all) == single);
}

// Decoded tokens: alone, and in a batch that is re-filled as sequences end.
void expect_equal_tokens(const Watched& watched, const std::string& kind) {
  engine::EngineOptions options;
  options.max_batch = 4;
  options.prefill_chunk = 50;
  engine::Engine engine = test::load_engine(watched.dir, options);
  if (!engine.batch_invariant()) GTEST_SKIP() << "this processor's GEMM is not batch-invariant";
  const PrecisionMap map = test::make_map(kind, engine.geometry().num_layers());
  std::vector<engine::SequenceRequest> requests;
  for (const auto& prompt : nine(engine.vocab_size(), watched.longest)) {
    engine::SequenceRequest request;
    request.prompt = prompt;
    request.max_new_tokens = 12 + static_cast<int>(requests.size());
    requests.push_back(request);
  }
  const auto together = engine.run(map, requests, {});
  ASSERT_TRUE(together.ok()) << together.error().message;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto alone = engine.run(map, {requests[i]}, {});
    ASSERT_TRUE(alone.ok()) << alone.error().message;
    EXPECT_EQ((*together)[i].tokens, (*alone)[0].tokens) << kind << ", sequence " << i;
    EXPECT_EQ((*together)[i].cache_bytes, (*alone)[0].cache_bytes);
  }
}

class TinyInvariance : public testing::TestWithParam<std::string> {
 protected:
  Watched watched() const { return {test::tiny_dir(GetParam()), 200}; }
};

TEST_P(TinyInvariance, LogitsPerToken) {
  expect_equal_logits(watched(), "per-token");
}
TEST_P(TinyInvariance, LogitsKiviStepwise) {
  expect_equal_logits(watched(), "kivi");
}
TEST_P(TinyInvariance, LogitsKiviExactPrefill) {
  expect_equal_logits(watched(), "kivi-exact");
}
TEST_P(TinyInvariance, LogitsBaseline) {
  expect_equal_logits(watched(), "baseline");
}
TEST_P(TinyInvariance, TokensPerToken) {
  expect_equal_tokens(watched(), "per-token");
}
TEST_P(TinyInvariance, TokensKiviExactPrefill) {
  expect_equal_tokens(watched(), "kivi-exact");
}
// History that is coded again is so at the same steps, whatever else is in the batch.
TEST_P(TinyInvariance, TokensKvtuner) {
  expect_equal_tokens(watched(), "kvtuner");
}
TEST_P(TinyInvariance, TokensKvtunerKivi) {
  expect_equal_tokens(watched(), "kvtuner-kivi");
}
TEST_P(TinyInvariance, Threads) {
  expect_equal_threads(watched());
}

// "plain" has heads of 10 channels, which 2-bit codes do not fill.
INSTANTIATE_TEST_SUITE_P(Variants, TinyInvariance, testing::Values("tied_linear", "untied_llama3"));

TEST(SmolLm2Invariance, Logits) {
  const std::string dir = test::smollm2_path();
  if (dir.empty()) GTEST_SKIP() << test::no_smollm2();
  EXPECT_TRUE(load(dir, 1)->batch_invariant());
  expect_equal_logits({dir, 40}, "per-token");
  expect_equal_logits({dir, 40}, "kivi");
}

TEST(SmolLm2Invariance, TokensAndThreads) {
  const std::string dir = test::smollm2_path();
  if (dir.empty()) GTEST_SKIP() << test::no_smollm2();
  expect_equal_tokens({dir, 38}, "kivi");
  expect_equal_threads({dir, 40});
}

}  // namespace
}  // namespace kvsweep
