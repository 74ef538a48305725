// Failures that users of other KV caches reported, as tests of this one. Each names its source;
// the symptoms are listed in docs/codecs.md. What other tests show already is named there too.
#include <gtest/gtest.h>

#include <memory>

#include "tests/worker/cache/cache_fixture.hpp"

namespace kvsweep::cache {
namespace {

using testing::Case;
using testing::Outputs;
using testing::Sequence;

constexpr int64_t kBudget = int64_t{1} << 30;
constexpr double kTolerance = 2e-5;  // as in view_test.cpp

Case case_of(const std::string& scheme, Pair pair) {
  Case c;
  c.options.name = scheme;
  c.pairs = {pair};
  c.layers = {{2, 64}};
  c.group = 2;
  return c;
}

// One sequence with its cache, stepped by the test.
struct Running {
  Running(const Case& c, Pool& pool)
      : setup(c), cache(setup.layout, c.prompt, pool), out(testing::empty_outputs(setup)) {}

  Status step(int64_t tokens) { return testing::run_chunk(setup, tokens, cache, out); }
  double error() const { return testing::max_difference(out, testing::brute_force(setup)); }

  Sequence setup;
  KvCache cache;
  Outputs out;
};

// transformers#35185: the whole prompt was coded, whatever the residual length said (Qwen2.5-7B:
// 98 of 120 right answers became 0).
TEST(Reported, APromptWithinTheResidualWindowStaysExact) {
  for (const int64_t tokens : {1, 33, 127, 128}) {
    Case coded = case_of("kivi", {Codec::int2, Codec::int2});
    coded.options.residual = 128;
    coded.prompt = tokens;
    coded.tokens = tokens;
    Pool pool(kBudget);
    Running low(coded, pool);
    ASSERT_TRUE(low.step(tokens).ok());
    Case plain = coded;
    plain.pairs = {{}};
    Running exact(plain, pool);
    ASSERT_TRUE(exact.step(tokens).ok());
    EXPECT_LE(testing::max_difference(low.out, exact.out), 1e-6) << tokens;
  }
}

// transformers PR#45510: a crop and a reordering of beams touched only the residual window. Here
// a beam is a fork: after forking and cropping, codes, parameters and exact tokens belong together.
TEST(Reported, ForksAndCropsTakeCodesParametersAndExactTokensAlong) {
  Case c = case_of("per-token", {Codec::int3, Codec::int4});
  c.options.sinks = 4;
  c.prompt = 90;
  c.tokens = 170;
  Pool pool(kBudget);
  Running beam(c, pool);
  ASSERT_TRUE(beam.step(90).ok());
  ASSERT_TRUE(beam.step(50).ok());
  auto forked = beam.cache.fork(c.prompt);
  ASSERT_TRUE(forked.ok());
  ASSERT_TRUE(forked->crop(101).ok());
  Outputs out = beam.out;
  while (forked->tokens() < c.tokens) {
    ASSERT_TRUE(testing::run_chunk(beam.setup, 1, *forked, out).ok());
  }
  Running fresh(c, pool);
  while (fresh.cache.tokens() < c.tokens) ASSERT_TRUE(fresh.step(1).ok());
  EXPECT_EQ(out, fresh.out);
  EXPECT_TRUE(testing::page_bytes(beam.setup, *forked) ==
              testing::page_bytes(beam.setup, fresh.cache));
}

// vLLM#38652, #3880, #4381 and TensorRT-LLM#2699: 8-bit floats failed, or gave garbage, in the
// second turn, with a reused prefix and with a prompt in chunks.
TEST(Reported, EightBitFloatsWithReuseAndChunks) {
  Case c = case_of("fp8", {Codec::fp8_e4m3, Codec::fp8_e5m2});
  c.prompt = 100;
  c.tokens = 230;
  Pool pool(kBudget);
  Running turns(c, pool);
  for (const int64_t chunk : {64, 36, 1, 1, 1, 77}) ASSERT_TRUE(turns.step(chunk).ok());
  auto reused = turns.cache.fork(c.prompt);
  ASSERT_TRUE(reused.ok());
  Outputs out = turns.out;
  ASSERT_TRUE(testing::run_chunk(turns.setup, 50, *reused, out).ok());
  EXPECT_LE(testing::max_difference(out, testing::brute_force(turns.setup)), kTolerance);
  Running whole(c, pool);
  ASSERT_TRUE(whole.step(c.tokens).ok());
  EXPECT_EQ(out, whole.out);
}

// vLLM#49716: strides of scales were wrong where a page has padding, and only under load. Rows of
// 3 bits on heads of 80 and a single head leave padding; eleven sequences take pages in turns.
TEST(Reported, PaddedPagesUnderLoad) {
  Case c = case_of("per-token", {Codec::int3, Codec::int2});
  c.options.group = 32;
  c.layers = {{1, 80}, {3, 96}};
  c.pairs = {{Codec::int3, Codec::int2}, {Codec::int2, Codec::int3}};
  c.prompt = 20;
  Pool pool(kBudget);
  std::vector<std::unique_ptr<Running>> running;
  for (int i = 0; i < 11; ++i) {
    c.seed = 40 + static_cast<uint64_t>(i);
    c.tokens = 100 + 13 * i;
    running.push_back(std::make_unique<Running>(c, pool));
  }
  const auto open = [](const Running& r) { return r.setup.config.tokens - r.cache.tokens(); };
  for (bool any = true; any;) {
    any = false;
    for (auto& r : running) {
      const int64_t chunk = std::min<int64_t>(open(*r), r->cache.tokens() == 0 ? 20 : 9);
      if (chunk > 0) {
        ASSERT_TRUE(r->step(chunk).ok());
      }
      any = any || open(*r) > 0;
    }
  }
  for (const auto& r : running) EXPECT_LE(r->error(), kTolerance);
}

// vLLM#50702, #50749: when the pool was full and prefixes were shared, texts were spliced and first
// tokens corrupted. A refusal leaves both sequences as they were, and what follows is right.
TEST(Reported, AFullPoolWithASharedPrefix) {
  Case c = case_of("per-token", {Codec::int4, Codec::int4});
  c.prompt = 70;
  c.tokens = 140;
  const Sequence setup(c);
  // Room for two sequences that share their first page and have one more each.
  Pool pool(3 * setup.layout.block_bytes + 2 * setup.layout.staging_bytes(c.tokens));
  Running first(c, pool);
  ASSERT_TRUE(first.step(70).ok());
  auto second = first.cache.fork(c.prompt);
  ASSERT_TRUE(second.ok());
  Outputs out = first.out;
  ASSERT_TRUE(first.step(58).ok());
  ASSERT_TRUE(testing::run_chunk(setup, 58, *second, out).ok());
  const Status full = first.step(12);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::oom);
  { const KvCache gone = std::move(*second); }
  ASSERT_TRUE(first.step(12).ok());
  EXPECT_LE(first.error(), kTolerance);
}

// FlashInfer#4749: NVFP4 was corrupted when keys were split over blocks. Here over sixteen pages,
// as every other codec.
TEST(Reported, ManyPagesOfEveryCodec) {
  for (const CodecInfo& codec : codecs()) {
    Case c = case_of("per-token", {codec.codec, codec.codec});
    c.layers = {{1, 64}};
    c.prompt = 1000;
    c.tokens = 1003;
    SCOPED_TRACE(c.text());
    Pool pool(kBudget);
    Running r(c, pool);
    for (const int64_t chunk : {1000, 1, 1, 1}) ASSERT_TRUE(r.step(chunk).ok());
    EXPECT_LE(r.error(), kTolerance);
  }
}

// KVmix's code fails on a prompt shorter than one group.
TEST(Reported, PromptsShorterThanAGroup) {
  for (const char* scheme : {"kivi", "kvmix", "kvmix-total"}) {
    for (const int64_t prompt : {1, 2, 31, 32}) {
      Case c = case_of(scheme, {Codec::int3, Codec::int2});
      c.prompt = prompt;
      c.tokens = prompt + 70;
      SCOPED_TRACE(c.text());
      Pool pool(kBudget);
      Running r(c, pool);
      ASSERT_TRUE(r.step(prompt).ok());
      while (r.cache.tokens() < c.tokens) ASSERT_TRUE(r.step(1).ok());
      EXPECT_LE(r.error(), kTolerance);
    }
  }
}

// llama.cpp#28524: quantized values without quantized keys ended the program; #27109: a pair that
// one path did not know ran elsewhere without a word. Every pair is either computed, which
// View.EqualsBruteForceForEveryPairOfCodecs shows, or has an objection that names what it objects
// to.
TEST(Reported, ARefusedPairIsNamed) {
  int refused = 0;
  for (const SchemeInfo& scheme : schemes()) {
    SchemeOptions options;
    options.name = scheme.name;
    const Scheme made = make_scheme(options).value();
    for (const CodecInfo& k : codecs()) {
      for (const CodecInfo& v : codecs()) {
        const std::string objection = made.objection({k.codec, v.codec});
        if (objection.empty()) continue;
        ++refused;
        const auto names = [&](std::string_view name) {
          return objection.find(name) != std::string::npos;
        };
        EXPECT_TRUE(names(k.name) || names(v.name)) << objection;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace kvsweep::cache
