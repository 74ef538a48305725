// A pair per KV head: every head is stored and seen as in a cache that stores all heads so, bit for
// bit, whatever the others are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/worker/cache/cache_fixture.hpp"

namespace kvsweep::cache {
namespace {

using testing::Case;
using ::testing::HasSubstr;
using testing::Outputs;
using testing::Sequence;

constexpr int64_t kBudget = int64_t{1} << 30;

struct Ran {
  Outputs out;
  int64_t bytes = 0;
};

Ran run_case(const Case& c, const std::vector<int64_t>& chunks) {
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache cache(setup.layout, c.prompt, pool);
  Ran run;
  run.out = testing::run_chunks(setup, chunks, cache);
  run.bytes = cache.bytes();
  EXPECT_EQ(pool.used_bytes(), run.bytes);
  return run;
}

// Of one KV head in layer 0: [tokens][group][head_dim].
std::vector<float> of_head(const Case& c, const Outputs& out, int head) {
  const auto [heads, head_dim] = c.layers[0];
  const int64_t width = int64_t{c.group} * head_dim;
  std::vector<float> own;
  for (int64_t t = 0; t < c.tokens; ++t) {
    const auto from = out[0].begin() + (t * heads + head) * width;
    own.insert(own.end(), from, from + width);
  }
  return own;
}

// The mixed cache against one uniform cache for each of its pairs.
void expect_heads_as_alone(Case c, const std::vector<Pair>& heads) {
  c.pairs = {LayerPairs::of_heads(heads)};
  c.layers[0].kv_heads = static_cast<int>(heads.size());
  SCOPED_TRACE(c.text());
  const Ran mixed = run_case(c, {29, 1, 64, 7});
  for (size_t head = 0; head < heads.size(); ++head) {
    Case alone = c;
    alone.pairs = {heads[head]};
    const Ran uniform = run_case(alone, {29, 1, 64, 7});
    ASSERT_EQ(of_head(c, mixed.out, static_cast<int>(head)),
              of_head(c, uniform.out, static_cast<int>(head)))
        << "KV head " << head;
  }
}

std::vector<Pair> pairs_of(const Scheme& scheme) {
  std::vector<Pair> pairs;
  for (const CodecInfo& k : codecs()) {
    for (const CodecInfo& v : codecs()) {
      const Pair pair{k.codec, v.codec};
      if (scheme.objection(pair).empty()) pairs.push_back(pair);
    }
  }
  return pairs;
}

// Every pair of every scheme appears, beside three others in one layer. (Reference schemes refuse
// them: check_map.)
TEST(Heads, OfEverySchemeAndPairAreAsAlone) {
  for (const SchemeInfo& scheme : schemes()) {
    if (scheme.reference()) continue;
    Case c;
    c.options.name = scheme.name;
    c.layers = {{4, 64}};
    c.group = 2;
    c.prompt = 70;
    c.tokens = 135;
    const std::vector<Pair> pairs = pairs_of(make_scheme(c.options).value());
    for (size_t i = 0; i < pairs.size(); i += 4) {
      std::vector<Pair> heads;
      // A step that is prime to every number of pairs, so that both sides change between heads.
      for (size_t j = 0; j < 4; ++j) heads.push_back(pairs[(i + j) * 7 % pairs.size()]);
      expect_heads_as_alone(c, heads);
    }
  }
}

// Windows, sinks, rotation, prefill and query windows: what a head does not share with the others
// and what it does.
TEST(Heads, WithEveryOptionAreAsAlone) {
  const std::vector<Pair> heads = {{Codec::int8, Codec::int4},
                                   {Codec::int4, Codec::int4},
                                   {Codec::base, Codec::int2},
                                   {Codec::int2, Codec::base},
                                   {Codec::int2, Codec::int3}};
  for (const char* scheme : {"per-token", "kivi", "kvmix", "kvmix-total"}) {
    for (const Prefill prefill : {Prefill::stepwise, Prefill::exact}) {
      for (const bool more : {false, true}) {
        Case c;
        c.options.name = scheme;
        c.options.prefill = prefill;
        c.options.sinks = more ? 3 : 0;
        c.options.hadamard = more ? Hadamard::both : Hadamard::none;
        c.options.symmetric = more;
        c.layers = {{5, 96}};
        c.base = more ? BaseType::bf16 : BaseType::fp16;
        c.window = more ? 60 : 0;
        c.softcap = more ? 5.0f : 0.0f;
        c.prompt = 90;
        c.tokens = 210;
        expect_heads_as_alone(c, heads);
      }
    }
  }
}

Case mixed_case(const std::string& scheme) {
  Case c;
  c.options.name = scheme;
  c.options.sinks = 2;
  const bool fp8 = scheme == "fp8";
  const Pair a = fp8 ? Pair{Codec::fp8_e4m3, Codec::fp8_e5m2} : Pair{Codec::int8, Codec::int2};
  const Pair b = fp8 ? Pair{Codec::base, Codec::fp8_e5m2} : Pair{Codec::int4, Codec::int2};
  const Pair d = fp8 ? Pair{} : Pair{Codec::int4, Codec::base};
  c.pairs = {LayerPairs::of_heads({a, b, d}), a, LayerPairs::of_heads({b, a})};
  c.layers = {{3, 64}, {1, 96}, {2, 128}};
  c.group = 2;
  c.prompt = 40;
  c.tokens = 210;
  return c;
}

const char* const kSchemes[] = {"per-token", "kivi", "kvmix", "kvmix-total", "fp8"};

TEST(Heads, EqualBruteForceHoweverTheyAreChunked) {
  for (const char* scheme : kSchemes) {
    const Case c = mixed_case(scheme);
    SCOPED_TRACE(c.text());
    const Ran whole = run_case(c, {c.tokens});
    EXPECT_LE(testing::max_difference(whole.out, testing::brute_force(Sequence(c))), 2e-5);
    for (const std::vector<int64_t>& chunks :
         {std::vector<int64_t>{1}, std::vector<int64_t>{40, 1, 13},
          testing::random_chunks(210, 5)}) {
      const Ran parts = run_case(c, chunks);
      EXPECT_EQ(parts.out, whole.out);
      EXPECT_EQ(parts.bytes, whole.bytes);
    }
  }
}

TEST(Heads, PagesHoldWhatTheCodecsGive) {
  for (const char* scheme : kSchemes) {
    const Case c = mixed_case(scheme);
    const Sequence setup(c);
    Pool pool(kBudget);
    KvCache cache(setup.layout, c.prompt, pool);
    testing::run_chunks(setup, {17}, cache);
    for (int layer = 0; layer < setup.num_layers(); ++layer) {
      for (const bool values : {false, true}) {
        const testing::Materialised expected = testing::materialise(setup, layer, values);
        EXPECT_EQ(testing::decode_pages(setup, cache, layer, values), expected.paged);
        for (size_t head = 0; head < expected.coded.size(); ++head) {
          EXPECT_EQ(cache.coded(layer, values, static_cast<int>(head)), expected.coded[head]);
        }
      }
    }
  }
}

Status run_to(const Sequence& setup, int64_t tokens, KvCache& cache, Outputs& out) {
  while (cache.tokens() < tokens) {
    const int64_t left = tokens - cache.tokens();
    KVSWEEP_TRY(testing::run_chunk(setup, std::min<int64_t>(left, 40), cache, out));
  }
  return {};
}

// The same first `from` tokens, and others after them.
Sequence other_end(const Case& c, int64_t from) {
  Sequence changed(c);
  Case d = c;
  d.seed += 1;
  const Sequence other(d);
  for (int layer = 0; layer < changed.num_layers(); ++layer) {
    const auto [heads, head_dim] = c.layers[layer];
    const auto keep = static_cast<ptrdiff_t>(from * heads * head_dim);
    for (const bool values : {false, true}) {
      const std::vector<float>& source = (values ? other.values : other.keys)[layer];
      std::vector<float>& target = (values ? changed.values : changed.keys)[layer];
      std::copy(source.begin() + keep, source.end(), target.begin() + keep);
    }
  }
  return changed;
}

TEST(Heads, BothEndsOfAForkGoOnAsIfAlone) {
  for (const char* scheme : kSchemes) {
    for (const int64_t at : {40, 64, 131}) {
      SCOPED_TRACE(std::string(scheme) + " at " + std::to_string(at));
      const Case c = mixed_case(scheme);
      const Sequence first(c);
      const Sequence second = other_end(c, at);
      Pool pool(kBudget);
      KvCache one(first.layout, c.prompt, pool);
      Outputs out = testing::empty_outputs(first);
      ASSERT_TRUE(run_to(first, at, one, out).ok());
      KvCache two = one.fork(c.prompt).value();
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

// A crop needs the originals of every head: where it is possible, what follows is fresh.
TEST(Heads, AfterACropAreFresh) {
  int cropped = 0;
  for (const char* scheme : kSchemes) {
    for (const int64_t to : {0, 1, 41, 66, 99, 128, 130}) {
      SCOPED_TRACE(std::string(scheme) + " to " + std::to_string(to));
      const Case c = mixed_case(scheme);
      const Sequence first(c);
      const Sequence second = other_end(c, to);
      Pool pool(kBudget);
      KvCache cache(first.layout, c.prompt, pool);
      Outputs out = testing::empty_outputs(first);
      ASSERT_TRUE(run_to(first, 130, cache, out).ok());
      if (!cache.crop(to).ok()) continue;
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
    }
  }
  EXPECT_GE(cropped, 14);
}

TEST(Heads, ErrorsCountThemWithinTheLayer) {
  for (const bool values : {false, true}) {
    for (int head = 0; head < 3; ++head) {
      const Case c = mixed_case("per-token");
      Sequence setup(c);
      (values ? setup.values : setup.keys)[0][static_cast<size_t>((50 * 3 + head) * 64 + 7)] =
          std::numeric_limits<float>::infinity();
      Pool pool(kBudget);
      KvCache cache(setup.layout, c.prompt, pool);
      Outputs out = testing::empty_outputs(setup);
      const Status status = run_to(setup, 80, cache, out);
      ASSERT_FALSE(status.ok());
      EXPECT_THAT(status.error().message,
                  HasSubstr("layer 0, KV head " + std::to_string(head) + ", token 50"));
    }
  }
}

// A layer with one KV head has no other form than the layer's.
TEST(Heads, AModelWithOneHeadIsStoredAsEver) {
  Case c;
  c.layers = {{1, 64}};
  c.prompt = 20;
  c.tokens = 100;
  c.pairs = {LayerPairs::of_heads({{Codec::int4, Codec::int2}})};
  const Ran listed = run_case(c, {9});
  c.pairs = {{Codec::int4, Codec::int2}};
  const Ran plain = run_case(c, {9});
  EXPECT_EQ(listed.out, plain.out);
  EXPECT_EQ(listed.bytes, plain.bytes);
}

}  // namespace
}  // namespace kvsweep::cache
