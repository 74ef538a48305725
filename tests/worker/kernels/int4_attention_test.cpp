// The INT4 score kernel against a reference that knows only the layout of the page and the formula
// code * scale + min: on the host through the arithmetic the kernel shares with it, and on the GPU
// when there is one.
#include "worker/kernels/int4_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "worker/codec/codec.hpp"
#include "worker/kernels/cuda_probe.hpp"
#include "worker/kernels/int4_page.cuh"
#if defined(KVSWEEP_CUDA)
#include "worker/kernels/int4_self_check.hpp"
#endif

namespace kvsweep::kernels {
namespace {

struct Case {
  int kv_heads;
  int query_group;
  int head_dim;
  int param_group;
  int page_tokens;
  int64_t tokens;
};

std::string describe(const Case& c) {
  return "kv" + std::to_string(c.kv_heads) + "_q" + std::to_string(c.query_group) + "_d" +
         std::to_string(c.head_dim) + "_g" + std::to_string(c.param_group) + "_p" +
         std::to_string(c.page_tokens) + "_t" + std::to_string(c.tokens);
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return describe(info.param);
}

// GoogleTest would print the bytes, padding included.
void PrintTo(const Case& c, std::ostream* out) {
  *out << describe(c);
}

// fp16 bit patterns whose value is known without a conversion: 2^-e for e in 1 .. 14 has exponent
// field 15 - e and mantissa 0; its negative has the sign bit.
uint16_t half_power(int e) {
  return static_cast<uint16_t>((15 - e) << 10);
}

// Pages filled element by element, and the same keys as numbers.
struct Problem {
  Int4Scores args;
  std::vector<std::vector<uint8_t>> pages;
  std::vector<double> keys;  // [kv_heads][tokens][head_dim]
  std::vector<float> queries;

  double key(int head, int64_t token, int i) const {
    return keys[(static_cast<size_t>(head) * args.tokens + token) * args.shape.head_dim + i];
  }
};

void fill_row(Problem& problem, std::mt19937& random, int head, int64_t token) {
  const Int4PageShape& shape = problem.args.shape;
  std::vector<uint8_t>& page = problem.pages[token / shape.page_tokens];
  const int64_t row = head * int64_t{shape.page_tokens} + token % shape.page_tokens;
  const int groups = (shape.head_dim + shape.param_group - 1) / shape.param_group;
  for (int group = 0; group < groups; ++group) {
    const int scale_power = 1 + static_cast<int>(random() % 5);
    const int min_power = 1 + static_cast<int>(random() % 5);
    const uint16_t pair[2] = {half_power(scale_power),
                              static_cast<uint16_t>(half_power(min_power) | 0x8000u)};
    std::memcpy(&page[shape.params_offset + (row * groups + group) * 4], pair, sizeof pair);
    const int end = std::min(shape.head_dim, (group + 1) * shape.param_group);
    for (int i = group * shape.param_group; i < end; ++i) {
      const uint32_t code = random() % 16;
      page[row * shape.head_dim / 2 + i / 2] |= static_cast<uint8_t>(code << (4 * (i % 2)));
      problem.keys[(head * problem.args.tokens + token) * shape.head_dim + i] =
          code * std::ldexp(1.0, -scale_power) - std::ldexp(1.0, -min_power);
    }
  }
}

Problem make_problem(const Case& c) {
  Problem problem;
  Int4PageShape& shape = problem.args.shape;
  shape = {c.kv_heads, c.page_tokens, c.head_dim, c.param_group, 0};
  const int64_t code_bytes = int64_t{c.kv_heads} * c.page_tokens * c.head_dim / 2;
  shape.params_offset = (code_bytes + 15) / 16 * 16;
  problem.args.query_group = c.query_group;
  problem.args.tokens = c.tokens;
  problem.args.scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
  const int64_t page_count = (c.tokens + c.page_tokens - 1) / c.page_tokens;
  problem.pages.assign(page_count, std::vector<uint8_t>(shape.page_bytes()));
  problem.keys.resize(static_cast<size_t>(c.kv_heads) * c.tokens * c.head_dim);
  std::mt19937 random(17);
  for (int head = 0; head < c.kv_heads; ++head) {
    for (int64_t token = 0; token < c.tokens; ++token) fill_row(problem, random, head, token);
  }
  std::normal_distribution<float> normal;
  problem.queries.resize(static_cast<size_t>(c.kv_heads) * c.query_group * c.head_dim);
  for (float& value : problem.queries) value = normal(random);
  return problem;
}

// The score in double, and the bound for fp32: head_dim additions and as many products, each off
// by 2^-24 of a partial sum that the sum of magnitudes bounds.
struct Expected {
  double score = 0;
  double bound = 0;
};

Expected expected_score(const Problem& problem, int query_head, int64_t token) {
  const int head_dim = problem.args.shape.head_dim;
  double sum = 0;
  double magnitude = 0;
  for (int i = 0; i < head_dim; ++i) {
    const double product = double{problem.queries[query_head * head_dim + i]} *
                           problem.key(query_head / problem.args.query_group, token, i);
    sum += product;
    magnitude += std::fabs(product);
  }
  return {sum * problem.args.scale,
          magnitude * problem.args.scale * (head_dim + 2) * std::ldexp(1.0, -24)};
}

class Int4Attention : public testing::TestWithParam<Case> {};

TEST_P(Int4Attention, SharedArithmeticMatchesDoubleReference) {
  const Problem problem = make_problem(GetParam());
  const Int4Scores& args = problem.args;
  ASSERT_EQ(check_int4_scores(args), "");
  for (int query_head = 0; query_head < args.shape.kv_heads * args.query_group; ++query_head) {
    for (int64_t token = 0; token < args.tokens; ++token) {
      const float got = team_score(
          args.shape, problem.pages[token / args.shape.page_tokens].data(),
          query_head / args.query_group, static_cast<int>(token % args.shape.page_tokens),
          &problem.queries[static_cast<size_t>(query_head) * args.shape.head_dim], args.scale);
      const Expected expected = expected_score(problem, query_head, token);
      ASSERT_NEAR(got, expected.score, expected.bound)
          << "query head " << query_head << ", token " << token;
    }
  }
}

TEST_P(Int4Attention, DeviceMatchesDoubleReference) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_status();
#if defined(KVSWEEP_CUDA)
  const Problem problem = make_problem(GetParam());
  const Int4Scores& args = problem.args;
  std::vector<float> scores;
  ASSERT_EQ(int4_scores_from_host(args, problem.queries, problem.pages, scores), "");
  for (int query_head = 0; query_head < args.shape.kv_heads * args.query_group; ++query_head) {
    for (int64_t token = 0; token < args.tokens; ++token) {
      const Expected expected = expected_score(problem, query_head, token);
      ASSERT_NEAR(scores[query_head * args.tokens + token], expected.score, expected.bound)
          << "query head " << query_head << ", token " << token;
    }
  }
#endif
}

// SmolLM2, Llama 3, Qwen2.5; several parameter groups; head sizes that are no power of two; more
// query heads than one block takes; one token; a last page that is not full.
INSTANTIATE_TEST_SUITE_P(Shapes, Int4Attention,
                         testing::Values(Case{3, 3, 64, 64, 64, 130}, Case{8, 4, 128, 64, 64, 129},
                                         Case{4, 7, 128, 32, 64, 100}, Case{1, 12, 80, 80, 32, 33},
                                         Case{2, 8, 96, 32, 128, 300}, Case{1, 1, 8, 8, 16, 1},
                                         Case{2, 2, 256, 128, 64, 65}, Case{1, 5, 72, 32, 64, 64}),
                         name_of);

// The kernel's shape and the cache's layout are two descriptions of the same bytes.
TEST(Int4AttentionLayout, PageShapeAgreesWithCacheLayout) {
  for (const int group : {32, 64, 0}) {
    SchemeOptions options;
    options.name = "per-token";
    options.group = group;
    const auto scheme = make_scheme(options);
    ASSERT_TRUE(scheme.ok());
    const ModelGeometry geometry{"llama", 8192, {{3, 64}, {5, 80}}};
    const CacheLayout layout =
        cache_layout(uniform_map(*scheme, 2, {Codec::int4, Codec::int4}), geometry, BaseType::fp16);
    for (const std::vector<SideLayout>& runs : layout.keys) {
      const SideLayout& side = runs.front();
      const Int4PageShape shape{side.kv_heads, side.page_tokens, side.head_dim,
                                group == 0 ? side.head_dim : group, side.params_offset};
      EXPECT_EQ(shape.row_bytes(), side.row_bytes);
      EXPECT_EQ(shape.params_per_row(), side.params_per_row);
      EXPECT_EQ((shape.page_bytes() + 15) / 16 * 16, side.page_bytes);
      Int4Scores args;
      args.shape = shape;
      args.query_group = 1;
      EXPECT_EQ(check_int4_scores(args), "");
    }
  }
}

// decode_key must give what the codec gives, bit for bit: scores on GPU and CPU then rest on equal
// keys.
TEST(Int4AttentionLayout, DecodedKeysAreTheCodecs) {
  const codec::Codec* int4 = codec::find_codec("int4");
  ASSERT_NE(int4, nullptr);
  constexpr int kHeadDim = 80;
  constexpr int kGroup = 32;  // the last group is shorter
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.3f, 2.0f);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> values(kHeadDim);
    for (float& value : values) value = normal(random);
    std::vector<uint8_t> codes(kHeadDim / 2);
    std::vector<uint8_t> params(4 * ((kHeadDim + kGroup - 1) / kGroup));
    ASSERT_TRUE(
        int4->encode_row({kHeadDim, kGroup}, values.data(), codes.data(), params.data()).ok());
    std::vector<float> decoded(kHeadDim);
    int4->decode_row({kHeadDim, kGroup}, codes.data(), params.data(), decoded.data());
    for (int i = 0; i < kHeadDim; ++i) {
      const uint32_t code = (codes[i / 2] >> (4 * (i % 2))) & 15u;
      uint16_t pair[2];
      std::memcpy(pair, &params[4 * (i / kGroup)], sizeof(pair));
      ASSERT_EQ(decode_key(code, param_to_float(pair[0]), param_to_float(pair[1])), decoded[i])
          << "element " << i;
    }
  }
}

TEST(Int4AttentionParams, EveryFiniteHalfConvertsExactly) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const uint32_t exponent = (bits >> 10) & 31u;
    if (exponent == 31u) continue;  // infinity and NaN are never stored
    const double mantissa = bits & 0x3ffu;
    // IEEE 754 binary16: m * 2^-24 below exponent 1, else (1024 + m) * 2^(e - 25).
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, int(exponent) - 25);
    const double value = (bits & 0x8000u) != 0 ? -magnitude : magnitude;
    ASSERT_EQ(double{param_to_float(static_cast<uint16_t>(bits))}, value) << bits;
  }
}

TEST(Int4AttentionArguments, RefusesShapesItCannotRunAndSaysWhy) {
  const auto message = [](auto change) {
    Int4Scores args = make_problem({2, 2, 64, 32, 16, 20}).args;
    change(args);
    return check_int4_scores(args);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(message([](Int4Scores& a) { a.shape.kv_heads = 0; }), "kv_heads is 0"));
  EXPECT_TRUE(has(message([](Int4Scores& a) { a.shape.page_tokens = -1; }), "page_tokens is -1"));
  EXPECT_TRUE(has(message([](Int4Scores& a) { a.shape.head_dim = 60; }), "head_dim is 60"));
  EXPECT_TRUE(has(message([](Int4Scores& a) { a.shape.param_group = 12; }), "param_group is 12"));
  EXPECT_TRUE(has(message([](Int4Scores& a) { a.shape.params_offset = 8; }), "params_offset is 8"));
  EXPECT_TRUE(has(message([](Int4Scores& a) { a.query_group = 65; }), "query_group is 65"));
  EXPECT_TRUE(has(message([](Int4Scores& a) { a.tokens = -1; }), "tokens is -1"));
#if defined(KVSWEEP_CUDA)
  Int4Scores args = make_problem({2, 2, 64, 32, 16, 20}).args;
  args.query_group = 0;  // refused before CUDA is touched, so also without a driver
  EXPECT_TRUE(has(launch_int4_scores(args, nullptr), "query_group is 0"));
#endif
}

}  // namespace
}  // namespace kvsweep::kernels
