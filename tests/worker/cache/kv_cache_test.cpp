// Bytes, pages, errors and memory of the cache.
#include "worker/cache/kv_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/worker/cache/cache_fixture.hpp"
#include "worker/codec/codec.hpp"

namespace kvsweep::cache {
namespace {

using testing::Case;
using ::testing::HasSubstr;
using testing::Outputs;
using testing::Sequence;

constexpr int64_t kBudget = int64_t{1} << 30;

Case small_case(const char* scheme, Pair pair) {
  Case c;
  c.options.name = scheme;
  c.pairs = {pair, pair};
  c.layers = {{2, 64}, {2, 64}};
  c.prompt = 70;
  c.tokens = 100;
  return c;
}

// The catalog counts bytes without the codecs; both must say the same of every codec.
TEST(Codecs, TheCatalogSaysWhatTheCodecsDo) {
  for (const CodecInfo& entry : codecs()) {
    if (entry.bits == 0) continue;
    SCOPED_TRACE(std::string(entry.name));
    const codec::Codec* codec = codec::find_codec(entry.name);
    ASSERT_NE(codec, nullptr);
    EXPECT_EQ(codec->bits, entry.bits);
    EXPECT_EQ(codec->encode_block != nullptr, entry.takes(Axis::channel));
    EXPECT_EQ(codec->supports_symmetric, entry.integer());
    EXPECT_EQ(codec->fixed_group, std::max(entry.group, 0));
    const Axis axis = Axis::token;
    for (const bool symmetric : {false, true}) {
      if (symmetric && !entry.integer()) continue;
      codec::Variant variant;
      variant.symmetric = symmetric;
      variant.calibrated = codec->calibration == codec::Calibration::required;
      variant.constant = variant.calibrated ? 1.0f : 0.0f;
      for (const int head_dim : {64, 80, 96, 128, 256}) {
        const int group = entry.group == kAnyGroup ? 32 : entry.group;
        const int groups = group == 0 ? 1 : (head_dim + group - 1) / group;
        const double bytes =
            static_cast<double>(codec->row_bytes(head_dim)) + groups * codec->param_bytes(variant);
        EXPECT_DOUBLE_EQ(
            format_bits({entry.codec, axis, group, symmetric, false}, head_dim, BaseType::fp16),
            8 * bytes / head_dim);
      }
    }
  }
}

// The bytes of one case by hand: kivi, group 32, residual 32, K4V8, fp16, 2 layers of 2 heads x 64.
//   K page 64 tokens: codes 2*64*32 = 4096, params 2*2*64*4 = 1024          -> 5120
//   V page:           codes 2*64*64 = 8192, params 2*64*2*4 = 1024          -> 9216
//   staging K: 32 tokens, V: 33 tokens, each 2*64*2 = 256 bytes per token   -> 16640
TEST(Bytes, AreTheLayoutsAndThePools) {
  const Sequence setup(small_case("kivi", {Codec::int4, Codec::int8}));
  Pool pool(kBudget);
  KvCache cache(setup.layout, setup.config.prompt, pool);
  EXPECT_EQ(cache.bytes(), 0);
  Outputs out = testing::empty_outputs(setup);
  ASSERT_TRUE(testing::run_chunk(setup, 32, cache, out).ok());
  EXPECT_EQ(cache.bytes(), 2 * 16640);  // nothing coded yet
  ASSERT_TRUE(testing::run_chunk(setup, 1, cache, out).ok());
  EXPECT_EQ(cache.bytes(), 2 * (16640 + 5120 + 9216));
  ASSERT_TRUE(testing::run_chunk(setup, 64, cache, out).ok());  // 97 tokens: K 96 coded
  EXPECT_EQ(cache.bytes(), 2 * (16640 + 2 * (5120 + 9216)));
  EXPECT_EQ(pool.used_bytes(), cache.bytes());
  EXPECT_EQ(cache.bytes(), setup.layout.bytes(97, 1));
  EXPECT_EQ(cache.coded(0, false), 96);
  EXPECT_EQ(cache.coded(0, true), 97 - 33);
}

TEST(Pages, HoldWhatTheCodecMakesOfTheRoundedOriginals) {
  for (const CodecInfo& entry : codecs()) {
    for (const char* scheme : {"per-token", "kivi"}) {
      for (BaseType base : {BaseType::fp16, BaseType::bf16, BaseType::fp32}) {
        if (entry.bits == 0) continue;
        const Codec keys =
            entry.takes(scheme[0] == 'k' ? Axis::channel : Axis::token) ? entry.codec : Codec::int4;
        Case c = small_case(scheme, {keys, entry.codec});
        c.base = base;
        c.options.sinks = base == BaseType::bf16 ? 3 : 0;
        c.options.symmetric = base == BaseType::fp32;
        c.options.hadamard = base == BaseType::fp32 ? Hadamard::both : Hadamard::none;
        const Sequence setup(c);
        Pool pool(kBudget);
        KvCache cache(setup.layout, c.prompt, pool);
        testing::run_chunks(setup, {13}, cache);
        for (int layer = 0; layer < 2; ++layer) {
          for (bool values : {false, true}) {
            auto expected = testing::materialise(setup, layer, values);
            for (int head = 0; head < 2; ++head) {
              EXPECT_EQ(cache.coded(layer, values, head), expected.coded[head]);
            }
            EXPECT_EQ(testing::decode_pages(setup, cache, layer, values), expected.paged);
          }
        }
      }
    }
  }
}

TEST(Pages, BaseTypeRowsAreTheRoundedOriginals) {
  Case c = small_case("kivi", {});
  c.base = BaseType::fp32;
  const Sequence setup(c);
  Pool pool(kBudget);
  KvCache cache(setup.layout, c.prompt, pool);
  testing::run_chunks(setup, {9}, cache);
  for (int64_t t = 0; t < c.tokens; ++t) {
    for (int head = 0; head < 2; ++head) {
      const uint8_t* row = cache.page(1, true, t) + (head * 64 + t % 64) * 256;
      ASSERT_EQ(std::memcmp(row, setup.values[1].data() + (t * 2 + head) * 64, 256), 0);
    }
  }
}

// Codes and parameters of coded tokens, in order: a prefix of the same a step later.
std::vector<uint8_t> coded_rows(const Sequence& setup, const KvCache& cache, bool values) {
  const SideLayout& s = testing::runs_of(setup.layout, 0, values).front();
  const int run = s.format.axis == Axis::channel ? s.format.group : 1;
  std::vector<uint8_t> bytes;
  for (int64_t t = 0; t < cache.coded(0, values); ++t) {
    const uint8_t* page = cache.page(0, values, t);
    const int64_t in_page = t % s.page_tokens;
    for (int head = 0; head < s.kv_heads; ++head) {
      const uint8_t* codes = page + (head * s.page_tokens + in_page) * s.row_bytes;
      bytes.insert(bytes.end(), codes, codes + s.row_bytes);
      const int64_t groups = (int64_t{head} * s.param_rows + in_page / run) * s.params_per_row;
      const uint8_t* params = page + s.params_offset + s.param_bytes * groups;
      bytes.insert(bytes.end(), params, params + int64_t{s.param_bytes} * s.params_per_row);
    }
  }
  return bytes;
}

TEST(Pages, AreAppendOnly) {
  for (const char* scheme : {"per-token", "kivi"}) {
    for (Prefill prefill : {Prefill::stepwise, Prefill::exact}) {
      Case c = small_case(scheme, {Codec::int4, Codec::int2});
      c.options.prefill = prefill;
      c.options.residual = 32;
      const Sequence setup(c);
      Pool pool(kBudget);
      KvCache cache(setup.layout, c.prompt, pool);
      Outputs out = testing::empty_outputs(setup);
      std::vector<uint8_t> before[2];
      while (cache.tokens() < c.tokens) {
        ASSERT_TRUE(testing::run_chunk(setup, cache.tokens() < 60 ? 10 : 1, cache, out).ok());
        for (bool values : {false, true}) {
          const std::vector<uint8_t> now = coded_rows(setup, cache, values);
          ASSERT_GE(now.size(), before[values].size());
          ASSERT_TRUE(std::equal(before[values].begin(), before[values].end(), now.begin()));
          before[values] = now;
        }
      }
      EXPECT_FALSE(before[0].empty());
    }
  }
}

Error failure_of(Sequence& setup, int64_t chunk) {
  Pool pool(kBudget);
  KvCache cache(setup.layout, setup.config.prompt, pool);
  Outputs out = testing::empty_outputs(setup);
  while (cache.tokens() < setup.config.tokens) {
    const int64_t left = setup.config.tokens - cache.tokens();
    const Status status = testing::run_chunk(setup, std::min(chunk, left), cache, out);
    if (!status.ok()) return status.error();
  }
  return {ErrorCode::internal, "no failure"};
}

// Layer 1, KV head 1, token 50 gets a bad element; whatever stores the side, the error names it.
TEST(Errors, NumericsNameLayerHeadAndToken) {
  const float infinity = std::numeric_limits<float>::infinity();
  const struct {
    float bad;
    BaseType base;
    const char* says;
  } cases[] = {
      {std::numeric_limits<float>::quiet_NaN(), BaseType::fp16, "not a finite number"},
      {infinity, BaseType::fp16, "not a finite number"},
      {-infinity, BaseType::bf16, "not a finite number"},
      {std::numeric_limits<float>::quiet_NaN(), BaseType::fp32, "not a finite number"},
      {70000.0f, BaseType::fp16, "beyond the range of fp16"},
      {-70000.0f, BaseType::bf16, "must lie within +-65504"},
      {-70000.0f, BaseType::fp32, "must lie within +-65504"},
      {3e38f, BaseType::fp32, "must not exceed 65504"},
  };
  for (const auto& e : cases) {
    for (const char* scheme : {"per-token", "kivi"}) {
      for (Codec codec : {Codec::base, Codec::int4}) {
        for (bool values : {false, true}) {
          const bool wide = std::isfinite(e.bad) && e.base != BaseType::fp16;
          if (wide && codec == Codec::base) continue;  // fits the base type: no error
          Case c = small_case(scheme, {codec, codec});
          c.base = e.base;
          Sequence setup(c);
          (values ? setup.values : setup.keys)[1][(50 * 2 + 1) * 64 + 7] = e.bad;
          const Error error = failure_of(setup, 11);
          EXPECT_EQ(error.code, ErrorCode::numerics);
          EXPECT_THAT(error.message, HasSubstr(values ? "the value is" : "the key is"));
          EXPECT_THAT(error.message, HasSubstr("layer 1, KV head 1, token 50:"));
          EXPECT_THAT(error.message, HasSubstr(e.says));
        }
      }
    }
  }
}

TEST(Errors, LargeValuesFitTheWiderBaseTypes) {
  for (BaseType base : {BaseType::bf16, BaseType::fp32}) {
    Case c = small_case("kivi", {});
    c.base = base;
    Sequence setup(c);
    setup.values[1][(50 * 2 + 1) * 64 + 7] = 1e30f;
    EXPECT_EQ(failure_of(setup, 11).message, "no failure");
  }
}

TEST(Errors, AFullPoolLeavesTheCacheAsItWas) {
  const Sequence setup(small_case("per-token", {Codec::int8, Codec::int8}));
  Pool pool(setup.layout.bytes(64, 1) + setup.layout.block_bytes / 2);
  KvCache cache(setup.layout, setup.config.prompt, pool);
  Outputs out = testing::empty_outputs(setup);
  ASSERT_TRUE(testing::run_chunk(setup, 60, cache, out).ok());
  const std::vector<uint8_t> before = testing::page_bytes(setup, cache);
  const Status status = cache.begin_chunk(10);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::oom);
  EXPECT_THAT(status.error().message, HasSubstr(std::to_string(setup.layout.bytes(70, 1))));
  EXPECT_EQ(cache.tokens(), 60);
  EXPECT_EQ(cache.bytes(), setup.layout.bytes(60, 1));
  EXPECT_EQ(pool.used_bytes(), cache.bytes());
  EXPECT_EQ(testing::page_bytes(setup, cache), before);
  ASSERT_TRUE(testing::run_chunk(setup, 4, cache, out).ok());  // what fits still runs
  Outputs expected = testing::brute_force(setup);
  for (int layer = 0; layer < 2; ++layer) {
    for (size_t i = 0; i < 64u * 2 * 64; ++i) ASSERT_NEAR(out[layer][i], expected[layer][i], 2e-5);
  }
}

TEST(Errors, AFirstChunkThatDoesNotFitTakesNothing) {
  const Sequence setup(small_case("kivi", {Codec::int8, Codec::int8}));
  Pool pool(setup.layout.staging_bytes(100) + setup.layout.block_bytes);
  KvCache cache(setup.layout, setup.config.prompt, pool);
  EXPECT_FALSE(cache.begin_chunk(100).ok());
  EXPECT_EQ(cache.bytes(), 0);
  EXPECT_EQ(pool.used_bytes(), 0);
}

TEST(Errors, CallsOutOfTurnThrow) {
  const Sequence setup(small_case("kivi", {Codec::int8, Codec::int8}));
  Pool pool(kBudget);
  KvCache cache(setup.layout, setup.config.prompt, pool);
  const LayerInput input{setup.keys[0].data(), setup.values[0].data(), 3};
  EXPECT_THROW((void)cache.append(0, input), std::logic_error);
  EXPECT_THROW((void)cache.begin_chunk(0), std::logic_error);
  ASSERT_TRUE(cache.begin_chunk(3).ok());
  EXPECT_THROW((void)cache.begin_chunk(3), std::logic_error);
  EXPECT_THROW(cache.end_layer(0), std::logic_error);
  ASSERT_TRUE(cache.append(0, input).ok());
  EXPECT_THROW((void)cache.append(0, input), std::logic_error);
  cache.end_layer(0);
  EXPECT_THROW(cache.end_chunk(), std::logic_error);
}

TEST(Memory, MovesAndDestructionGiveEverythingBack) {
  const Sequence setup(small_case("kivi", {Codec::int4, Codec::int4}));
  Pool pool(kBudget);
  {
    KvCache a(setup.layout, setup.config.prompt, pool);
    Outputs out = testing::empty_outputs(setup);
    ASSERT_TRUE(testing::run_chunk(setup, 50, a, out).ok());
    KvCache b(std::move(a));
    ASSERT_TRUE(testing::run_chunk(setup, 20, b, out).ok());
    KvCache c(setup.layout, setup.config.prompt, pool);
    ASSERT_TRUE(c.begin_chunk(90).ok());
    c = std::move(b);  // frees what c had reserved
    EXPECT_EQ(pool.used_bytes(), c.bytes());
    while (c.tokens() < setup.config.tokens) {
      ASSERT_TRUE(testing::run_chunk(setup, 1, c, out).ok());
    }
    EXPECT_LE(testing::max_difference(out, testing::brute_force(setup)), 2e-5);
  }
  EXPECT_EQ(pool.used_bytes(), 0);
  EXPECT_GT(pool.peak_bytes(), 0);
}

// A second sequence in reused blocks sees nothing of the first.
TEST(Memory, ReusedBlocksAreClean) {
  for (const char* scheme : {"per-token", "kivi"}) {
    Case c = small_case(scheme, {Codec::int4, Codec::base});
    const Sequence first(c);
    c.seed = 2;
    const Sequence second(c);
    Pool fresh(kBudget);
    KvCache alone(second.layout, c.prompt, fresh);
    const Outputs expected = testing::run_chunks(second, {31}, alone);
    Pool pool(first.layout.bytes(c.tokens, 1));
    {
      KvCache cache(first.layout, c.prompt, pool);
      testing::run_chunks(first, {31}, cache);
    }
    KvCache cache(second.layout, c.prompt, pool);
    EXPECT_EQ(testing::run_chunks(second, {31}, cache), expected);
    EXPECT_TRUE(testing::page_bytes(second, cache) == testing::page_bytes(second, alone));
  }
}

TEST(Pool, CountsReusesAndRefuses) {
  Pool pool(1000);
  void* a = pool.allocate(600);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(pool.allocate(401), nullptr);
  EXPECT_EQ(pool.used_bytes(), 600);
  std::memset(a, 0xff, 600);
  pool.release(a, 600);
  EXPECT_EQ(pool.used_bytes(), 0);
  auto* b = static_cast<uint8_t*>(pool.allocate(600));
  EXPECT_EQ(b, a);
  for (int i = 0; i < 600; ++i) ASSERT_EQ(b[i], 0);
  pool.release(b, 600);
  void* c = pool.allocate(900);  // the spare 600 bytes make room
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(pool.peak_bytes(), 900);
  pool.release(c, 900);
  EXPECT_EQ(pool.allocate(0), nullptr);
  EXPECT_EQ(pool.budget_bytes(), 1000);
}

}  // namespace
}  // namespace kvsweep::cache
