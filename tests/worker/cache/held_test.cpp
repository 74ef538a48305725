// Held chunks: whatever of them stays, the cache goes on as if the rest had never come.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/worker/cache/cache_fixture.hpp"

namespace kvsweep::cache {
namespace {

using testing::Case;
using testing::Outputs;
using testing::Sequence;

constexpr int64_t kBudget = int64_t{1} << 30;

void copy_rows(const std::vector<float>& from, int64_t row, int64_t first, std::vector<float>& to) {
  std::copy(from.begin() + first * row, from.end(), to.begin() + first * row);
}

// The truth up to `right`, and rows of another seed behind it.
Sequence wrong_from(const Sequence& truth, const Sequence& other, int64_t right) {
  Sequence draft = truth;
  for (int layer = 0; layer < truth.num_layers(); ++layer) {
    const auto [heads, head_dim] = truth.config.layers[layer];
    const int64_t row = int64_t{heads} * head_dim;
    copy_rows(other.keys[layer], row, right, draft.keys[layer]);
    copy_rows(other.values[layer], row, right, draft.values[layer]);
    copy_rows(other.queries[layer], row * truth.config.group, right, draft.queries[layer]);
  }
  return draft;
}

void copy_outputs(const Sequence& setup, const Outputs& from, int64_t first, int64_t count,
                  Outputs& to) {
  for (int layer = 0; layer < setup.num_layers(); ++layer) {
    const auto [heads, head_dim] = setup.config.layers[layer];
    const int64_t row = int64_t{heads} * head_dim * setup.config.group;
    std::copy_n(from[layer].begin() + first * row, count * row, to[layer].begin() + first * row);
  }
}

// Decodes in held chunks of random length of which a random part stays, each beside the same
// tokens one by one.
void expect_as_if_never_seen(const Case& c, uint64_t seed) {
  SCOPED_TRACE(c.text());
  std::mt19937_64 rng(seed);
  const Sequence truth(c);
  Case d = c;
  d.seed += 1000;
  const Sequence other(d);
  Pool pool(kBudget);
  KvCache held(truth.layout, c.prompt, pool);
  KvCache plain(truth.layout, c.prompt, pool);
  Outputs got = testing::empty_outputs(truth);
  Outputs want = got;
  // A prefill may be held too, and leaves its last token to the first chunk with a draft.
  const int64_t prefill = std::max<int64_t>(1, c.prompt - static_cast<int64_t>(rng() % 2));
  ASSERT_TRUE(testing::open_held_chunk(truth, prefill, held, got).ok());
  held.end_chunk(prefill);
  ASSERT_TRUE(testing::run_chunk(truth, prefill, plain, want).ok());
  while (held.tokens() < c.tokens) {
    const int64_t at = held.tokens();
    const int64_t chunk = std::min<int64_t>(c.tokens - at, 1 + static_cast<int64_t>(rng() % 70));
    const int64_t kept = 1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(chunk));
    const Sequence draft = wrong_from(truth, other, at + kept);
    Outputs seen = got;
    ASSERT_TRUE(testing::open_held_chunk(draft, chunk, held, seen).ok());
    if (rng() % 8 == 0) {
      held.drop_chunk();
      EXPECT_EQ(held.tokens(), at);
      continue;
    }
    held.end_chunk(kept);
    copy_outputs(truth, seen, at, kept, got);
    while (plain.tokens() < at + kept) {
      ASSERT_TRUE(testing::run_chunk(truth, 1, plain, want).ok());
    }
    EXPECT_EQ(held.tokens(), plain.tokens());
    if (c.options.name != "kvmix-total") {
      EXPECT_EQ(held.bytes(), plain.bytes());
    }
    for (int layer = 0; layer < truth.num_layers(); ++layer) {
      for (const bool values : {false, true}) {
        ASSERT_EQ(held.coded(layer, values), plain.coded(layer, values));
        if (truth.scheme.info().reference()) continue;  // pages of floats: the outputs compare them
        ASSERT_EQ(testing::decode_pages(truth, held, layer, values),
                  testing::decode_pages(truth, plain, layer, values));
      }
    }
  }
  EXPECT_EQ(got, want);
}

struct Kind {
  SchemeOptions options;
  LayerPairs pairs;
};

std::vector<Kind> kinds() {
  const Pair k4v2{Codec::int4, Codec::int2};
  const Pair fp8{Codec::fp8_e4m3, Codec::fp8_e5m2};
  return {
      {{.name = "per-token"}, {k4v2}},
      {{.name = "per-token", .residual = 7, .sinks = 3}, {k4v2}},
      {{.name = "per-token"}, {{Codec::base, Codec::base}}},
      {{.name = "per-token", .residual = 20}, {{Codec::base, Codec::int3}}},
      {{.name = "kivi"}, {k4v2}},
      {{.name = "kivi", .residual = 64, .sinks = 5, .prefill = Prefill::stepwise}, {k4v2}},
      {{.name = "kivi", .group = 128, .residual = 128}, {{Codec::int3, Codec::int8}}},
      {{.name = "kivi", .hadamard = Hadamard::both}, {k4v2}},
      {{.name = "kvmix"}, {k4v2}},
      {{.name = "kvmix", .prefill = Prefill::stepwise}, {{Codec::int2, Codec::int4}}},
      {{.name = "kvmix-total", .sinks = 2}, {k4v2}},
      {{.name = "kvmix-11pack"}, {{Codec::int3, Codec::int2}}},
      {{.name = "fp8", .residual = 3}, {fp8}},
  };
}

TEST(Held, WhatIsNotKeptNeverCame) {
  uint64_t seed = 1;
  for (const Kind& kind : kinds()) {
    for (const int64_t prompt : {1, 40, 97}) {
      Case c;
      c.options = kind.options;
      c.pairs = {kind.pairs, kind.pairs};
      c.layers = {{2, 64}, {1, 96}};
      if (c.options.hadamard) c.layers = {{2, 64}, {1, 128}};
      c.group = 3;
      c.prompt = prompt;
      c.tokens = prompt + 260;
      c.seed = seed;
      expect_as_if_never_seen(c, seed++);
    }
  }
}

// Heads of one layer that are stored differently, so that one ring reaches further back.
TEST(Held, HeadsWithPairsOfTheirOwn) {
  for (const char* scheme : {"per-token", "kivi", "kvmix"}) {
    Case c;
    c.options.name = scheme;
    c.pairs = {LayerPairs::of_heads(
        {{Codec::int8, Codec::int4}, {Codec::int4, Codec::int2}, {Codec::base, Codec::int2}})};
    c.layers = {{3, 64}};
    c.prompt = 50;
    c.tokens = 300;
    expect_as_if_never_seen(c, 77);
  }
}

// A key that cannot be stored, in the part of a chunk that would not have stayed.
TEST(Held, AnErrorIsUndone) {
  for (const char* scheme : {"per-token", "kivi", "kvmix"}) {
    Case c;
    c.options.name = scheme;
    c.pairs.assign(2, {{Codec::int4, Codec::int4}});
    c.layers.assign(2, {1, 64});
    c.prompt = 40;
    c.tokens = 140;
    const Sequence truth(c);
    Sequence broken = truth;
    broken.values[1][64 * 75] = std::numeric_limits<float>::quiet_NaN();
    Pool pool(kBudget);
    KvCache held(truth.layout, c.prompt, pool);
    Outputs got = testing::empty_outputs(truth);
    ASSERT_TRUE(testing::run_chunk(truth, 70, held, got).ok());
    const int64_t bytes = held.bytes();
    const Status failed = testing::open_held_chunk(broken, 70, held, got);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, ErrorCode::numerics);
    held.drop_chunk();
    EXPECT_EQ(held.bytes(), bytes);
    ASSERT_TRUE(testing::run_chunk(truth, 70, held, got).ok());
    KvCache plain(truth.layout, c.prompt, pool);
    EXPECT_EQ(got, testing::run_chunks(truth, {c.tokens}, plain));
  }
}

TEST(Held, RefusesWhatCannotBe) {
  Case c;
  c.options.name = "kivi";
  c.pairs = {{{Codec::int4, Codec::int4}}};
  c.prompt = 10;
  c.tokens = 60;
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache cache(setup.layout, c.prompt, pool);
  Outputs out = testing::empty_outputs(setup);
  ASSERT_TRUE(cache.begin_chunk(10).ok());
  EXPECT_THROW(cache.drop_chunk(), std::logic_error);
  EXPECT_THROW(cache.end_chunk(9), std::logic_error);
  KvCache held(setup.layout, c.prompt, pool);
  ASSERT_TRUE(testing::open_held_chunk(setup, 10, held, out).ok());
  EXPECT_THROW(held.end_chunk(0), std::logic_error);
  EXPECT_THROW(held.end_chunk(11), std::logic_error);
  c.options.name = "kvtuner";
  const Sequence again(c);
  KvCache recoding(again.layout, c.prompt, pool);
  EXPECT_THROW((void)recoding.begin_chunk(10, true), std::logic_error);
}

}  // namespace
}  // namespace kvsweep::cache
