// Forks share pages until one writes, and crops leave what a fresh cache would hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/worker/cache/cache_fixture.hpp"

namespace kvsweep::cache {
namespace {

using testing::Case;
using ::testing::HasSubstr;
using testing::Outputs;
using testing::Sequence;

constexpr int64_t kBudget = int64_t{1} << 30;

Case case_of(const std::string& scheme, Pair pair) {
  Case c;
  c.options.name = scheme;
  c.options.sinks = 2;
  c.pairs = {pair, pair};
  c.layers = {{2, 64}, {1, 96}};
  c.prompt = 40;
  c.tokens = 210;
  return c;
}

Status run_to(const Sequence& setup, int64_t tokens, KvCache& cache, Outputs& out) {
  while (cache.tokens() < tokens) {
    const int64_t left = tokens - cache.tokens();
    KVSWEEP_TRY(testing::run_chunk(setup, std::min<int64_t>(left, 40), cache, out));
  }
  return {};
}

// The same tokens, and others from `from` on.
Sequence other_end(const Case& c, int64_t from) {
  Sequence changed(c);
  Case d = c;
  d.seed += 1;
  const Sequence other(d);
  for (int layer = 0; layer < changed.num_layers(); ++layer) {
    const auto [heads, head_dim] = c.layers[layer];
    const auto keep = static_cast<ptrdiff_t>(from * heads * head_dim);
    std::copy(other.keys[layer].begin() + keep, other.keys[layer].end(),
              changed.keys[layer].begin() + keep);
    std::copy(other.values[layer].begin() + keep, other.values[layer].end(),
              changed.values[layer].begin() + keep);
  }
  return changed;
}

const char* const kSchemes[] = {"per-token", "kivi", "kvmix", "kvmix-total", "fp8"};

Pair pair_for(const std::string& scheme) {
  if (scheme == "fp8") return {Codec::fp8_e4m3, Codec::fp8_e5m2};
  return {Codec::int4, Codec::int2};
}

// Both ends of a fork are what they would be alone, in any order of writing.
TEST(Fork, BothGoOnAsIfAlone) {
  for (const char* scheme : kSchemes) {
    for (const int64_t at : {40, 64, 100, 131}) {
      SCOPED_TRACE(std::string(scheme) + " at " + std::to_string(at));
      const Case c = case_of(scheme, pair_for(scheme));
      const Sequence first(c);
      const Sequence second = other_end(c, at);
      Pool pool(kBudget);
      KvCache one(first.layout, c.prompt, pool);
      Outputs out = testing::empty_outputs(first);
      ASSERT_TRUE(run_to(first, at, one, out).ok());
      auto forked = one.fork(c.prompt);
      ASSERT_TRUE(forked.ok());
      KvCache& two = *forked;
      EXPECT_EQ(two.tokens(), at);
      Outputs other = out;
      while (one.tokens() < c.tokens) {
        ASSERT_TRUE(testing::run_chunk(first, 1, one, out).ok());
        ASSERT_TRUE(testing::run_chunk(second, 1, two, other).ok());
      }
      EXPECT_LE(testing::max_difference(out, testing::brute_force(first)), 2e-5);
      EXPECT_LE(testing::max_difference(other, testing::brute_force(second)), 2e-5);
    }
  }
}

// per-token with sinks 2, pages of 64: at 131 tokens 129 are coded, so two pages are full and the
// third, which both will write, is copied by the first writer.
TEST(Fork, SharesFullBlocksAndCopiesTheOpenOne) {
  const Case c = case_of("per-token", {Codec::int4, Codec::int4});
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache one(setup.layout, c.prompt, pool);
  Outputs out = testing::empty_outputs(setup);
  ASSERT_TRUE(run_to(setup, 131, one, out).ok());
  const int64_t alone = pool.used_bytes();
  const int64_t staging = setup.layout.staging_bytes(131);
  auto two = one.fork(c.prompt);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(pool.used_bytes(), alone + staging);
  EXPECT_EQ(one.page(0, false, 2), two->page(0, false, 2));
  ASSERT_TRUE(testing::run_chunk(setup, 1, *two, out).ok());
  EXPECT_EQ(pool.used_bytes(), alone + staging + setup.layout.block_bytes);
  EXPECT_EQ(one.page(0, false, 2), two->page(0, false, 2));      // full: still shared
  EXPECT_NE(one.page(0, false, 130), two->page(0, false, 130));  // open: its own
  ASSERT_TRUE(testing::run_chunk(setup, 1, one, out).ok());
  EXPECT_EQ(pool.used_bytes(),
            alone + staging + setup.layout.block_bytes);  // one is the sole owner
  one = KvCache(setup.layout, c.prompt, pool);
  EXPECT_EQ(pool.used_bytes(), two->bytes());
}

// A cache that was cropped to nothing forks into one for another prompt, longer or shorter.
TEST(Fork, OfNothingStartsAnew) {
  for (const char* scheme : kSchemes) {
    Case c = case_of(scheme, pair_for(scheme));
    const Sequence setup(c);
    Pool pool(kBudget);
    KvCache one(setup.layout, 7, pool);
    Outputs out = testing::empty_outputs(setup);
    ASSERT_TRUE(run_to(setup, 50, one, out).ok());
    ASSERT_TRUE(one.crop(0).ok());
    KvCache two = one.fork(c.prompt).value();
    ASSERT_TRUE(run_to(setup, c.tokens, two, out).ok());
    EXPECT_LE(testing::max_difference(out, testing::brute_force(setup)), 2e-5);
  }
}

TEST(Fork, AFullPoolRefuses) {
  const Case c = case_of("kivi", {Codec::int4, Codec::int4});
  const Sequence setup(c);
  Pool pool(setup.layout.bytes(100, 1) + 100);
  KvCache one(setup.layout, c.prompt, pool);
  Outputs out = testing::empty_outputs(setup);
  ASSERT_TRUE(run_to(setup, 100, one, out).ok());
  const auto two = one.fork(c.prompt);
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().code, ErrorCode::oom);
  EXPECT_EQ(pool.used_bytes(), one.bytes());
}

TEST(Fork, ForksRunInParallel) {
  const Case c = case_of("kivi", {Codec::int3, Codec::int2});
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache root(setup.layout, c.prompt, pool);
  Outputs start = testing::empty_outputs(setup);
  ASSERT_TRUE(run_to(setup, 100, root, start).ok());
  std::vector<KvCache> forks;
  for (int i = 0; i < 4; ++i) forks.push_back(root.fork(c.prompt).value());
  std::vector<Outputs> outs(4, start);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < forks.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int step = 0; step < 60; ++step) (void)testing::run_chunk(setup, 1, forks[i], outs[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Outputs& out : outs) EXPECT_EQ(out, outs[0]);
}

// Codes and parameters of all coded tokens.
std::vector<uint8_t> coded_bytes(const Sequence& setup, const KvCache& cache) {
  std::vector<uint8_t> bytes;
  for (int layer = 0; layer < setup.num_layers(); ++layer) {
    for (bool values : {false, true}) {
      for (double x : testing::decode_pages(setup, cache, layer, values)) {
        const auto* raw = reinterpret_cast<const uint8_t*>(&x);
        bytes.insert(bytes.end(), raw, raw + sizeof(x));
      }
    }
  }
  return bytes;
}

// Where a crop is possible, what follows equals a cache that never saw the rest, bit for bit.
TEST(Crop, WhatFollowsIsFresh) {
  int cropped = 0;
  for (const char* scheme : kSchemes) {
    for (const int64_t to : {0, 1, 2, 41, 63, 66, 98, 99, 100, 128, 129, 130}) {
      SCOPED_TRACE(std::string(scheme) + " to " + std::to_string(to));
      const Case c = case_of(scheme, pair_for(scheme));
      const Sequence first(c);
      const Sequence second = other_end(c, to);
      Pool pool(kBudget);
      KvCache cache(first.layout, c.prompt, pool);
      Outputs out = testing::empty_outputs(first);
      ASSERT_TRUE(run_to(first, 130, cache, out).ok());
      const int64_t bytes = cache.bytes();
      const Status status = cache.crop(to);
      if (!status.ok()) {
        EXPECT_THAT(status.error().message, HasSubstr("originals"));
        EXPECT_EQ(cache.tokens(), 130);
        EXPECT_EQ(cache.bytes(), bytes);
        continue;
      }
      ++cropped;
      KvCache fresh(second.layout, c.prompt, pool);
      Outputs expected = testing::empty_outputs(second);
      ASSERT_TRUE(run_to(second, to, fresh, expected).ok());
      Outputs after = expected;
      while (cache.tokens() < 200) {
        ASSERT_TRUE(testing::run_chunk(second, 1, cache, after).ok());
        ASSERT_TRUE(testing::run_chunk(second, 1, fresh, expected).ok());
      }
      EXPECT_EQ(after, expected);
      EXPECT_EQ(coded_bytes(second, cache), coded_bytes(second, fresh));
    }
  }
  EXPECT_GE(cropped, 30);
}

// What must be possible: anywhere without a window, and to nothing; what cannot: into an exact
// prompt, and back over codes whose originals the ring lost.
TEST(Crop, SaysWhatItCannot) {
  const auto crops = [](const char* scheme, int64_t to) {
    const Case c = case_of(scheme, pair_for(scheme));
    const Sequence setup(c);
    Pool pool(kBudget);
    KvCache cache(setup.layout, c.prompt, pool);
    Outputs out = testing::empty_outputs(setup);
    EXPECT_TRUE(run_to(setup, 130, cache, out).ok());
    return cache.crop(to).ok();
  };
  for (int64_t to : {0, 1, 39, 77, 130}) EXPECT_TRUE(crops("per-token", to)) << to;
  EXPECT_TRUE(crops("kivi", 0));
  EXPECT_FALSE(crops("kivi", 39));  // the prompt of 40 was seen exact
  EXPECT_FALSE(crops("kivi", 70));
  EXPECT_FALSE(crops("kivi", 129));  // 33 values were exact then, and the ring holds 33 newer ones
  EXPECT_TRUE(crops("kivi", 130));
}

TEST(Crop, FreesTheBlocksBeyond) {
  const Case c = case_of("per-token", {Codec::int8, Codec::int8});
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache cache(setup.layout, c.prompt, pool);
  Outputs out = testing::empty_outputs(setup);
  ASSERT_TRUE(run_to(setup, 200, cache, out).ok());
  ASSERT_TRUE(cache.crop(66).ok());  // 64 beside the sinks: one page
  EXPECT_EQ(cache.bytes(), setup.layout.bytes(66, 1));
  EXPECT_EQ(pool.used_bytes(), cache.bytes());
  EXPECT_THROW((void)cache.crop(67), std::logic_error);
}

// A crop of one fork leaves the other as it is.
TEST(Crop, OfAForkLeavesTheOther) {
  const Case c = case_of("per-token", {Codec::int4, Codec::int8});
  const Sequence first(c);
  const Sequence second = other_end(c, 70);
  Pool pool(kBudget);
  KvCache one(first.layout, c.prompt, pool);
  Outputs out = testing::empty_outputs(first);
  ASSERT_TRUE(run_to(first, 180, one, out).ok());
  KvCache two = one.fork(c.prompt).value();
  ASSERT_TRUE(two.crop(70).ok());
  const std::vector<uint8_t> before = coded_bytes(first, one);
  Outputs other = out;
  ASSERT_TRUE(run_to(second, 200, two, other).ok());
  EXPECT_EQ(coded_bytes(first, one), before);
  EXPECT_LE(
      testing::max_difference(other,
                              [&] {
                                Outputs expected = testing::brute_force(second);
                                for (int layer = 0; layer < second.num_layers(); ++layer) {
                                  const auto [heads, head_dim] = c.layers[layer];
                                  const size_t from = 200u * heads * head_dim;  // beyond what ran
                                  std::copy(other[layer].begin() + static_cast<ptrdiff_t>(from),
                                            other[layer].end(),
                                            expected[layer].begin() + static_cast<ptrdiff_t>(from));
                                }
                                return expected;
                              }()),
      2e-5);
}

// What a prefill leaves that saw the originals, without computing it.
TEST(Adopt, EqualsThePrefillThatSawOriginals) {
  for (const char* scheme : {"per-token", "kivi", "kvmix", "kvmix-total", "fp8"}) {
    for (const int64_t prompt : {1, 2, 31, 64, 100}) {
      Case c = case_of(scheme, pair_for(scheme));
      c.options.prefill = Prefill::exact;
      c.prompt = prompt;
      c.tokens = prompt + 80;
      SCOPED_TRACE(c.text());
      const Sequence setup(c);
      Pool pool(kBudget);
      KvCache computed(setup.layout, prompt, pool);
      Outputs expected = testing::empty_outputs(setup);
      ASSERT_TRUE(testing::run_chunk(setup, prompt, computed, expected).ok());

      Sequence plain = setup;
      plain.layout = plain_layout(setup.layout);
      KvCache originals(plain.layout, prompt, pool);
      Outputs out = testing::empty_outputs(setup);
      ASSERT_TRUE(testing::run_chunk(plain, prompt, originals, out).ok());
      EXPECT_EQ(out, expected) << "the prompt's queries";
      KvCache adopted(setup.layout, prompt, pool);
      ASSERT_TRUE(adopted.adopt(originals).ok());
      EXPECT_EQ(adopted.bytes(), computed.bytes());
      EXPECT_TRUE(testing::page_bytes(setup, adopted) == testing::page_bytes(setup, computed));
      while (computed.tokens() < c.tokens) {
        ASSERT_TRUE(testing::run_chunk(setup, 1, computed, expected).ok());
        ASSERT_TRUE(testing::run_chunk(setup, 1, adopted, out).ok());
      }
      EXPECT_EQ(out, expected);
    }
  }
}

}  // namespace
}  // namespace kvsweep::cache
