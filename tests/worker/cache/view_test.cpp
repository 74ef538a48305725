// What every query sees, against a brute force in double, and that neither chunking nor threads
// change a bit of it.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/worker/cache/cache_fixture.hpp"

namespace kvsweep::cache {
namespace {

using testing::Case;
using testing::Outputs;
using testing::Sequence;

// Keys, values and queries are standard normal: outputs are below 5, and fp32 sums over at most
// 400 tokens and 256 channels stay within this of double.
constexpr double kTolerance = 2e-5;
constexpr int64_t kBudget = int64_t{1} << 30;

uint64_t fresh_seed() {
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  return seed;
}

// Reference schemes read their codes back, which no view shows (published_caches_test.cpp).
std::vector<SchemeInfo> append_only_schemes() {
  std::vector<SchemeInfo> found;
  for (const SchemeInfo& scheme : schemes()) {
    if (!scheme.reference()) found.push_back(scheme);
  }
  return found;
}

// A random case within issue bounds: all schemes and options, codecs, shapes.
Case random_case(std::mt19937_64& rng) {
  Case c;
  static const std::vector<SchemeInfo> kSchemes = append_only_schemes();
  const SchemeInfo& scheme = kSchemes[rng() % kSchemes.size()];
  c.options.name = scheme.name;
  const int groups[] = {32, 64, 128, 0};
  const bool channel = scheme.k_axis == Axis::channel;
  const int group = scheme.codecs == SchemeCodecs::fp8 ? 0 : groups[rng() % (channel ? 3 : 4)];
  c.options.group = group;
  if (scheme.window == WindowRule::tokens) {
    const int residuals[] = {0, 1, 32, 128};
    c.options.residual = channel ? group * static_cast<int>(1 + rng() % 2) : residuals[rng() % 4];
  } else if (rng() % 2 == 0) {
    c.options.share = 1 + static_cast<int>(rng() % 9);
  }
  const int sinks[] = {0, 0, 1, 4, 64};
  c.options.sinks = sinks[rng() % 5];
  c.options.hadamard = static_cast<Hadamard>(rng() % 4);
  c.options.symmetric = scheme.codecs != SchemeCodecs::fp8 && rng() % 3 == 0;
  c.options.prefill = rng() % 2 == 0 ? Prefill::stepwise : Prefill::exact;
  const BaseType bases[] = {BaseType::fp16, BaseType::bf16, BaseType::fp32};
  c.base = bases[rng() % 3];
  const int head_dims[] = {64, 80, 96, 128, 256};
  c.layers = {{static_cast<int>(1 + rng() % 3), head_dims[rng() % 5]}};
  const Scheme made = make_scheme(c.options).value();
  const auto any_pair = [&] {
    Pair pair;
    do {
      const auto pick = [&] { return codecs()[rng() % codecs().size()].codec; };
      pair.k = pick();
      pair.v = pick();
    } while (!made.objection(pair).empty());
    return pair;
  };
  std::vector<Pair> heads(static_cast<size_t>(c.layers[0].kv_heads), any_pair());
  const bool per_head = rng() % 3 == 0;
  for (Pair& pair : heads) pair = per_head ? any_pair() : heads.front();
  c.pairs = {LayerPairs::of_heads(heads)};
  c.group = static_cast<int>(1 + rng() % 4);
  c.tokens = 1 + static_cast<int64_t>(rng() % 300);
  c.prompt = 1 + static_cast<int64_t>(rng() % c.tokens);
  const int64_t windows[] = {0, 0, 1, 7, 64, 100};
  c.window = windows[rng() % 6];
  c.softcap = rng() % 3 == 0 ? 5.0f : 0.0f;
  c.seed = rng();
  return c;
}

void expect_exact_view(const Case& c, const std::vector<int64_t>& chunks) {
  SCOPED_TRACE(c.text());
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache cache(setup.layout, c.prompt, pool);
  const Outputs out = testing::run_chunks(setup, chunks, cache);
  EXPECT_LE(testing::max_difference(out, testing::brute_force(setup)), kTolerance);
}

TEST(View, EqualsBruteForceOnRandomCases) {
  std::mt19937_64 rng(fresh_seed());
  for (int i = 0; i < 60; ++i) {
    const Case c = random_case(rng);
    expect_exact_view(c, testing::random_chunks(c.tokens, c.seed));
  }
}

TEST(View, EqualsBruteForceForEveryPairOfCodecs) {
  for (const SchemeInfo& scheme : append_only_schemes()) {
    for (const CodecInfo& k : codecs()) {
      for (const CodecInfo& v : codecs()) {
        Case c;
        c.options.name = scheme.name;
        if (!make_scheme(c.options).value().objection({k.codec, v.codec}).empty()) continue;
        c.options.prefill = Prefill::stepwise;
        c.pairs = {{k.codec, v.codec}};
        c.layers = {{2, 64}};
        c.group = 3;
        c.prompt = 70;
        c.tokens = 75;
        expect_exact_view(c, {70, 1});
      }
    }
  }
}

// Around every border of a group (32) and a page (64), prompt and decode.
TEST(View, EqualsBruteForceAtEveryBorder) {
  for (const char* scheme : {"per-token", "kivi"}) {
    for (Prefill prefill : {Prefill::stepwise, Prefill::exact}) {
      for (int64_t tokens : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 197}) {
        Case c;
        c.options.name = scheme;
        c.options.group = 32;
        c.options.residual = 32;
        c.options.prefill = prefill;
        c.pairs = {{Codec::int2, Codec::int2}};
        c.prompt = tokens;
        c.tokens = tokens + 3;
        expect_exact_view(c, {tokens, 1});
        c.prompt = std::max<int64_t>(1, tokens / 2);
        expect_exact_view(c, {7});
      }
    }
  }
}

// Groups of 128 come with pages of 128.
TEST(View, EqualsBruteForceAtTheBordersOfLongPages) {
  for (Prefill prefill : {Prefill::stepwise, Prefill::exact}) {
    for (int64_t tokens : {127, 128, 129, 255, 257, 389}) {
      Case c;
      c.options.name = "kivi";
      c.options.group = 128;
      c.options.prefill = prefill;
      c.pairs = {{Codec::int2, Codec::int4}};
      c.prompt = tokens - 2;
      c.tokens = tokens + 2;
      expect_exact_view(c, {tokens - 2, 1});
    }
  }
}

TEST(View, LayersOfUnlikeShapesShareABlock) {
  for (const char* scheme : {"per-token", "kivi"}) {
    Case c;
    c.options.name = scheme;
    c.layers = {{3, 64}, {1, 128}, {2, 80}, {1, 64}};
    c.pairs = {{Codec::int8, Codec::int4},
               {Codec::base, Codec::int2},
               {Codec::int2, Codec::base},
               {Codec::base, Codec::base}};
    c.group = 2;
    c.prompt = 90;
    c.tokens = 140;
    expect_exact_view(c, {33, 57, 1, 4});
  }
}

// Chunks of the prompt may end anywhere, also beyond it (teacher forcing feeds prompt and reference
// as one stream).
TEST(View, AChunkMaySpanPromptAndReference) {
  for (const char* scheme : {"per-token", "kivi"}) {
    Case c;
    c.options.name = scheme;
    c.options.prefill = Prefill::exact;
    c.pairs = {{Codec::int2, Codec::int4}};
    c.prompt = 65;
    c.tokens = 180;
    expect_exact_view(c, {180});
    expect_exact_view(c, {50, 130});
  }
}

void expect_same_bits(const Sequence& setup, const std::vector<int64_t>& a,
                      const std::vector<int64_t>& b) {
  Pool pool(kBudget);
  KvCache first(setup.layout, setup.config.prompt, pool);
  KvCache second(setup.layout, setup.config.prompt, pool);
  const Outputs x = testing::run_chunks(setup, a, first);
  const Outputs y = testing::run_chunks(setup, b, second);
  for (int layer = 0; layer < setup.num_layers(); ++layer) {
    EXPECT_EQ(std::memcmp(x[layer].data(), y[layer].data(), x[layer].size() * sizeof(float)), 0);
  }
  EXPECT_TRUE(testing::page_bytes(setup, first) == testing::page_bytes(setup, second));
}

TEST(Chunks, WholeRandomAndSingleTokensGiveTheSameBits) {
  std::mt19937_64 rng(fresh_seed());
  for (int i = 0; i < 40; ++i) {
    Case c = random_case(rng);
    if (i % 10 == 0) c.tokens += 300;
    SCOPED_TRACE(c.text());
    const Sequence setup(c);
    expect_same_bits(setup, {c.tokens}, testing::random_chunks(c.tokens, c.seed));
    expect_same_bits(setup, {c.tokens}, {1});
  }
}

// A query's result does not depend on the heads it is computed with.
TEST(Chunks, QueryHeadsTogetherOrAloneGiveTheSameBits) {
  Case c;
  c.options.name = "kivi";
  c.pairs = {{Codec::int4, Codec::int2}};
  c.group = 7;
  c.prompt = 100;
  c.tokens = 150;
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache cache(setup.layout, c.prompt, pool);
  const Outputs all = testing::run_chunks(setup, {40}, cache);
  for (int h = 0; h < c.group; ++h) {
    Case one = c;
    one.group = 1;
    Sequence single(one);
    single.keys = setup.keys;
    single.values = setup.values;
    for (int64_t t = 0; t < c.tokens; ++t) {
      std::memcpy(single.queries[0].data() + t * 64,
                  setup.queries[0].data() + (t * c.group + h) * 64, 64 * sizeof(float));
    }
    KvCache alone(single.layout, c.prompt, pool);
    const Outputs out = testing::run_chunks(single, {23}, alone);
    for (int64_t t = 0; t < c.tokens; ++t) {
      ASSERT_EQ(std::memcmp(out[0].data() + t * 64, all[0].data() + (t * c.group + h) * 64,
                            64 * sizeof(float)),
                0);
    }
  }
}

TEST(Threads, HeadsAndSequencesInParallelGiveTheSameBits) {
  Case c;
  c.options.name = "kivi";
  c.pairs = {{Codec::int2, Codec::int4}};
  c.layers = {{4, 64}};
  c.group = 3;
  c.prompt = 130;
  c.tokens = 130;
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache serial(setup.layout, c.prompt, pool);
  const Outputs expected = testing::run_chunks(setup, {130}, serial);

  KvCache cache(setup.layout, c.prompt, pool);
  Outputs out = testing::empty_outputs(setup);
  ASSERT_TRUE(cache.begin_chunk(130).ok());
  ASSERT_TRUE(cache.append(0, {setup.keys[0].data(), setup.values[0].data(), 130}).ok());
  std::vector<std::thread> threads;
  for (int head = 0; head < 4; ++head) {
    threads.emplace_back([&, head] {
      KvCache::Queries q;
      q.q = setup.queries[0].data() + head * 3 * 64;
      q.out = out[0].data() + head * 3 * 64;
      q.token_stride = 4 * 3 * 64;
      q.head_stride = 64;
      q.group = 3;
      q.scale = setup.scale(0);
      cache.attend(0, head, q);
    });
  }
  std::vector<Outputs> others(2);
  for (Outputs& other : others) {
    threads.emplace_back([&] {
      KvCache own(setup.layout, c.prompt, pool);
      other = testing::run_chunks(setup, {17}, own);
    });
  }
  for (std::thread& t : threads) t.join();
  cache.end_layer(0);
  cache.end_chunk();
  EXPECT_EQ(out, expected);
  for (const Outputs& other : others) EXPECT_EQ(other, expected);
}

}  // namespace
}  // namespace kvsweep::cache
