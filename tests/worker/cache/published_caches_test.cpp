// The reference schemes, token by token, against published_caches.py: a numpy rewrite of KVTuner's
// and KVmix's caches as their code runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/hash.hpp"
#include "tests/worker/cache/cache_fixture.hpp"

namespace kvsweep::cache {
namespace {

using testing::Case;
using testing::Outputs;
using testing::Sequence;

constexpr int64_t kBudget = int64_t{1} << 30;

// The generator of published_caches.py.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  std::vector<float> draw(size_t count) {
    std::vector<float> out(count);
    for (float& x : out) {
      state_ = (1103515245 * state_ + 12345) % (uint64_t{1} << 31);
      x = (static_cast<float>((state_ >> 8) % 4097) - 2048) / 512;
    }
    return out;
  }

 private:
  uint64_t state_;
};

struct Step {
  int64_t position = 0;
  int64_t coded[2] = {};
  std::string sha[2];
};

struct Out {
  int64_t position = 0;
  int head = 0;
  double channels[4] = {};
};

struct Golden {
  Case config;
  std::vector<Step> steps;
  std::vector<Out> outs;
};

Codec integers(int bits) {
  return codec_from("int" + std::to_string(bits)).value();
}

Case read_case(std::istringstream& line) {
  Case c;
  std::string base;
  int group = 0;
  int residual = 0;
  int bits[2] = {};
  bool symmetric = false;
  LayerGeometry& layer = c.layers[0];
  line >> c.options.name >> group >> residual >> base >> bits[0] >> bits[1] >> layer.kv_heads >>
      layer.head_dim >> c.prompt >> c.tokens >> symmetric;
  c.options.group = group;
  c.options.symmetric = symmetric;
  if (c.options.name != "kvmix-11pack") c.options.residual = residual;
  c.base = base_type_from(base).value();
  c.pairs = {{integers(bits[0]), integers(bits[1])}};
  return c;
}

std::vector<Golden> read_goldens() {
  std::ifstream file(std::string(KVSWEEP_TEST_DIR) + "/goldens/published_caches.txt");
  std::vector<Golden> all;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "case") {
      all.push_back({read_case(line), {}, {}});
    } else if (kind == "step") {
      Step step;
      line >> step.position >> step.coded[0] >> step.coded[1] >> step.sha[0] >> step.sha[1];
      all.back().steps.push_back(step);
    } else {
      Out out;
      line >> out.position >> out.head;
      for (double& x : out.channels) line >> x;
      all.back().outs.push_back(out);
    }
  }
  return all;
}

Sequence sequence_of(const Case& c, uint64_t seed) {
  Sequence setup(c);
  Numbers numbers(seed);
  for (auto* rows : {&setup.keys[0], &setup.values[0], &setup.queries[0]}) {
    *rows = numbers.draw(rows->size());
  }
  const auto dim = static_cast<size_t>(c.layers[0].head_dim);
  for (size_t i = 0; i < setup.keys[0].size(); ++i) {
    setup.keys[0][i] += 4.0f * static_cast<float>(i % dim % 3);
  }
  return setup;
}

// SHA-256 of the coded rows of a simulated side.
std::string coded_sha(const Sequence& setup, const KvCache& cache, bool values) {
  const SideLayout& s = values ? setup.layout.values[0][0] : setup.layout.keys[0][0];
  const auto row = static_cast<size_t>(s.head_dim) * sizeof(float);
  std::string bytes;
  for (int64_t token = 0; token < cache.coded(0, values); ++token) {
    const uint8_t* page = cache.page(0, values, token);
    for (int head = 0; head < s.kv_heads; ++head) {
      const int64_t at = int64_t{head} * s.page_tokens + token % s.page_tokens;
      bytes.append(reinterpret_cast<const char*>(page) + static_cast<size_t>(at) * row, row);
    }
  }
  return sha256_hex(bytes);
}

void expect_step(const Sequence& setup, const KvCache& cache, const Step& step) {
  for (const bool values : {false, true}) {
    const SideLayout& s = values ? setup.layout.values[0][0] : setup.layout.keys[0][0];
    ASSERT_EQ(cache.coded(0, values), step.coded[values]) << "token " << step.position;
    if (!s.format.simulated()) continue;
    ASSERT_EQ(coded_sha(setup, cache, values), step.sha[values])
        << "token " << step.position << (values ? " values" : " keys");
  }
}

void expect_outs(const Golden& golden, const Outputs& out) {
  const LayerGeometry& layer = golden.config.layers[0];
  for (const Out& expected : golden.outs) {
    const int64_t row = (expected.position * layer.kv_heads + expected.head) * layer.head_dim;
    for (int d = 0; d < 4; ++d) {
      ASSERT_NEAR(out[0][static_cast<size_t>(row + d)], expected.channels[d], 2e-5)
          << "token " << expected.position << " head " << expected.head;
    }
  }
}

// The prompt in chunks of `chunk`.
void expect_published(const Golden& golden, uint64_t seed, int64_t chunk) {
  SCOPED_TRACE(golden.config.text());
  const Sequence setup = sequence_of(golden.config, seed);
  const int64_t prompt = golden.config.prompt;
  Pool pool(kBudget);
  KvCache cache(setup.layout, prompt, pool);
  Outputs out = testing::empty_outputs(setup);
  while (cache.tokens() < prompt) {
    const int64_t count = std::min(chunk, prompt - cache.tokens());
    ASSERT_TRUE(testing::run_chunk(setup, count, cache, out).ok());
  }
  for (const Step& step : golden.steps) {
    if (step.position >= prompt) {
      ASSERT_TRUE(testing::run_chunk(setup, 1, cache, out).ok());
    }
    ASSERT_EQ(cache.tokens(), step.position + 1);
    expect_step(setup, cache, step);
    ASSERT_EQ(cache.bytes(), setup.layout.allocated_bytes(cache.tokens(), prompt));
  }
  expect_outs(golden, out);
}

TEST(PublishedCaches, AreReproducedTokenByToken) {
  const std::vector<Golden> all = read_goldens();
  ASSERT_GE(all.size(), 20u);
  for (size_t i = 0; i < all.size(); ++i) {
    expect_published(all[i], 1 + i, all[i].config.prompt);
    expect_published(all[i], 1 + i, 9);
  }
}

// Both go on from a common history, which each then codes again for itself.
TEST(PublishedCaches, ForksCodeTheirHistoryAlone) {
  for (const Golden& golden : read_goldens()) {
    SCOPED_TRACE(golden.config.text());
    const Sequence setup = sequence_of(golden.config, 99);
    const int64_t prompt = golden.config.prompt;
    Pool pool(kBudget);
    KvCache one(setup.layout, prompt, pool);
    Outputs alone = testing::empty_outputs(setup);
    ASSERT_TRUE(testing::run_chunk(setup, prompt, one, alone).ok());
    const int64_t at = (prompt + golden.config.tokens) / 2;
    while (one.tokens() < at) ASSERT_TRUE(testing::run_chunk(setup, 1, one, alone).ok());
    KvCache two = one.fork(prompt).value();
    const std::string before[2] = {coded_sha(setup, two, false), coded_sha(setup, one, false)};
    EXPECT_EQ(before[0], before[1]);
    Outputs forked = alone;
    while (one.tokens() < golden.config.tokens) {
      ASSERT_TRUE(testing::run_chunk(setup, 1, one, alone).ok());
    }
    EXPECT_EQ(coded_sha(setup, two, false), before[0]);
    while (two.tokens() < golden.config.tokens) {
      ASSERT_TRUE(testing::run_chunk(setup, 1, two, forked).ok());
    }
    EXPECT_EQ(alone, forked);
    EXPECT_EQ(coded_sha(setup, two, false), coded_sha(setup, one, false));
  }
}

Case small_case(const std::string& scheme, int residual) {
  Case c;
  c.options.name = scheme;
  c.options.residual = residual;
  c.pairs = {{Codec::int4, Codec::int4}};
  c.prompt = 5;
  c.tokens = 40;
  return c;
}

TEST(PublishedCaches, RefuseChunksAndCropsThatNoHistoryAllows) {
  const Sequence setup(small_case("kvtuner", 8));
  Pool pool(kBudget);
  KvCache cache(setup.layout, 5, pool);
  Outputs out = testing::empty_outputs(setup);
  EXPECT_THROW((void)testing::run_chunk(setup, 6, cache, out), std::logic_error);
  ASSERT_TRUE(testing::run_chunk(setup, 5, cache, out).ok());
  EXPECT_THROW((void)testing::run_chunk(setup, 2, cache, out), std::logic_error);
  while (cache.tokens() < 17) ASSERT_TRUE(testing::run_chunk(setup, 1, cache, out).ok());
  // 13 are coded, for the second time: the four after them may go, no more.
  EXPECT_EQ(cache.coded(0, false), 13);
  EXPECT_FALSE(cache.crop(13).ok());
  EXPECT_FALSE(cache.crop(6).ok());
  ASSERT_TRUE(cache.crop(14).ok());
  Outputs again = out;
  while (cache.tokens() < 17) ASSERT_TRUE(testing::run_chunk(setup, 1, cache, again).ok());
  EXPECT_EQ(out, again);
  ASSERT_TRUE(cache.crop(0).ok());
  EXPECT_EQ(cache.coded(0, true), 0);
}

// A map may leave sides in the base type, and sequences longer than a page.
TEST(PublishedCaches, StandBesideSidesInTheBaseType) {
  for (const char* scheme : {"kvtuner", "kvtuner-kivi"}) {
    Case c = small_case(scheme, 32);
    c.layers = {{2, 64}, {1, 128}};
    c.pairs = {{Codec::base, Codec::int2}, {Codec::base, Codec::base}};
    c.prompt = 70;
    c.tokens = 150;
    const Sequence setup(c);
    Pool pool(kBudget);
    KvCache cache(setup.layout, c.prompt, pool);
    Outputs out = testing::empty_outputs(setup);
    ASSERT_TRUE(testing::run_chunk(setup, 70, cache, out).ok());
    while (cache.tokens() < c.tokens) {
      ASSERT_TRUE(testing::run_chunk(setup, 1, cache, out).ok());
    }
    EXPECT_EQ(cache.coded(0, true), 134);
    // The layer that nothing codes is exact attention.
    Case plain = c;
    plain.options = {};
    plain.pairs = {{}, {}};
    const Outputs expected = testing::brute_force(Sequence(plain));
    for (size_t i = 0; i < expected[1].size(); ++i) {
      ASSERT_NEAR(out[1][i], expected[1][i], 2e-5);
    }
  }
}

TEST(PublishedCaches, NumericsFailuresNameTheTokenEvenOfAHistory) {
  Case c = small_case("kvtuner", 2);
  c.base = BaseType::fp32;
  Sequence setup(c);
  // The range of token 5, the first decoded one, overflows; it is coded when token 7 comes.
  setup.keys[0][5 * 64 + 3] = -3e38f;
  setup.keys[0][5 * 64 + 9] = 3e38f;
  Pool pool(kBudget);
  KvCache cache(setup.layout, 5, pool);
  Outputs out = testing::empty_outputs(setup);
  ASSERT_TRUE(testing::run_chunk(setup, 5, cache, out).ok());
  ASSERT_TRUE(testing::run_chunk(setup, 1, cache, out).ok());
  ASSERT_TRUE(testing::run_chunk(setup, 1, cache, out).ok());
  const Status status = testing::run_chunk(setup, 1, cache, out);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::numerics);
  EXPECT_THAT(status.error().message, ::testing::HasSubstr("layer 0, KV head 0, token 5: the key"));
}

}  // namespace
}  // namespace kvsweep::cache
