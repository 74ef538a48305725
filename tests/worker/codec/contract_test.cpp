// What every codec of the table must do, in every variant and on every axis that it has.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <random>

#include "tests/worker/codec/codec_golden.hpp"
#include "tests/worker/codec/codec_runs.hpp"

namespace kvsweep::codec {
namespace {

using testing::CodecCase;
using testing::Coded;
using testing::Layout;

unsigned fresh_seed() {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  return seed;
}

// Elements per whole byte (3 bits: per three bytes): what rows and groups are multiples of.
int unit(const Codec& codec) {
  return codec.bits == 3 ? 8 : 8 / codec.bits;
}

template <typename Use>
void for_each_axis(const Codec& codec, const Use& use) {
  for (const Variant& variant : testing::variants(codec)) {
    if (codec.encode_row != nullptr) use(false, variant);
    if (codec.encode_block != nullptr) use(true, variant);
  }
}

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

void expect_case(const CodecCase& c) {
  const Codec* codec = find_codec(c.codec);
  ASSERT_NE(codec, nullptr) << c.codec;
  SCOPED_TRACE(c.name + ": " + testing::text(*codec, c.layout));
  const Coded got = testing::run(*codec, c.layout, c.x);
  ASSERT_TRUE(got.result.ok());
  EXPECT_EQ(got.params, c.params);
  EXPECT_EQ(got.codes, c.codes);
  ASSERT_EQ(got.y.size(), c.y.size());
  for (size_t i = 0; i < c.y.size(); ++i) ASSERT_TRUE(same(got.y[i], c.y[i])) << i;
}

TEST(CodecContract, EqualsTheNumpyRewriteBitForBit) {
  const std::string path = std::string(KVSWEEP_TEST_DIR) + "/goldens/codecs.txt";
  const std::vector<CodecCase> cases = testing::read_codec_cases(path);
  for (const CodecCase& c : cases) expect_case(c);
  for (const Codec& codec : codecs()) {
    for_each_axis(codec, [&](bool channel, const Variant& variant) {
      const auto covers = [&](const CodecCase& c) {
        return c.codec == codec.name && c.layout.channel == channel &&
               c.layout.variant.symmetric == variant.symmetric &&
               c.layout.variant.calibrated == variant.calibrated;
      };
      EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), covers)) << codec.name;
    });
  }
}

TEST(CodecContract, KvtunerEqualsTorchBitForBit) {
  const std::string path = std::string(KVSWEEP_TEST_DIR) + "/goldens/kvtuner_torch.txt";
  const std::vector<CodecCase> cases = testing::read_codec_cases(path);
  EXPECT_EQ(cases.size(), 6u * 13u);
  for (const CodecCase& c : cases) expect_case(c);
}

TEST(CodecContract, EqualsTheNumpyRewriteOnFreshInputs) {
  const std::string python =
      std::string("PYTHONPATH=\"") + KVSWEEP_SOURCE_DIR + "/.deps/python:$PYTHONPATH\" python3 ";
  if (std::system((python + "-c 'import numpy' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "python3 cannot import numpy; the committed cases were compared";
  }
  char path[] = "/tmp/kvsweep_codec_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  close(fd);
  const std::string command = python + "\"" + KVSWEEP_TEST_DIR +
                              "/reference_codecs.py\" --random 150 --seed " +
                              std::to_string(fresh_seed()) + " " + path;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::vector<CodecCase> cases = testing::read_codec_cases(path);
  EXPECT_EQ(cases.size(), 150u);
  for (const CodecCase& c : cases) expect_case(c);
  unlink(path);
}

Layout random_layout(const Codec& codec, bool channel, const Variant& variant, std::mt19937& rng) {
  constexpr int kHeadDims[] = {64, 80, 96, 128, 256};
  Layout l{channel, kHeadDims[rng() % 5], 0, 0, variant};
  if (channel) {
    const int lengths[] = {1, 31, 32, 33, 64, 128};
    l.group = codec.fixed_group > 0 ? codec.fixed_group : lengths[rng() % 6];
    l.tokens = l.group * int(1 + rng() % 2);
  } else {
    const std::vector<int> groups = testing::row_groups(codec, l.head_dim);
    l.group = groups[rng() % groups.size()];
    l.tokens = 1 + int(rng() % 3);
  }
  return l;
}

// Scales 1e-6 .. 1e4, groups about 0 and about +-(32 .. 1000).
std::vector<float> random_values(const Layout& l, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-6, 4), mean(32, 1000);
  const float scale = std::pow(10.0f, exponent(rng));
  const float offset = rng() % 2 ? 0.0f : (rng() % 2 ? 1.0f : -1.0f) * mean(rng);
  std::vector<float> x(size_t(l.tokens) * l.head_dim);
  for (float& v : x) v = std::clamp(normal(rng) * scale + offset, -65000.0f, 65000.0f);
  return x;
}

void expect_bound(const Codec& codec, const Layout& l, const Coded& got,
                  const std::vector<float>& x) {
  SCOPED_TRACE(testing::text(codec, l));
  for (int t = 0; t < l.tokens; ++t) {
    for (int d = 0; d < l.head_dim; ++d) {
      const int64_t at = int64_t{t} * l.head_dim + d;
      const double bound = testing::error_bound(codec, l, got, x[at], t, d);
      ASSERT_LE(std::fabs(double(got.y[at]) - double(x[at])), bound)
          << "token " << t << " channel " << d << " x " << x[at] << " x^ " << got.y[at];
    }
  }
}

TEST(CodecContract, DecodedIsWithinTheBoundOfTheHeader) {
  std::mt19937 rng(fresh_seed());
  for (const Codec& codec : codecs()) {
    for_each_axis(codec, [&](bool channel, const Variant& variant) {
      for (int i = 0; i < 60; ++i) {
        Layout l = random_layout(codec, channel, variant, rng);
        const std::vector<float> x = random_values(l, rng);
        if (variant.calibrated) {
          l.variant.constant = std::fabs(x[0]) / 100 + 1e-8f;  // some elements saturate
        }
        const Coded got = testing::run(codec, l, x);
        ASSERT_TRUE(got.result.ok()) << testing::text(codec, l);
        expect_bound(codec, l, got, x);
      }
    });
  }
}

// The lengths of the groups: 1, G - 1, G, G + 1 elements, as far as the row's bytes are whole.
TEST(CodecContract, EveryLengthAroundAGroup) {
  std::mt19937 rng(fresh_seed());
  for (const Codec& codec : codecs()) {
    const int step = codec.code == kernels::CodeKind::uint3 ? 1 : unit(codec);
    const int group = codec.fixed_group > 0 ? codec.fixed_group : 32;
    for_each_axis(codec, [&](bool channel, const Variant& variant) {
      for (int length : {step, group - step, group, group + step}) {
        Layout l{channel, length, std::min(group, length), 2, variant};
        if (channel) l = Layout{true, 2 * unit(codec), length, length, variant};
        if (channel && codec.fixed_group > 0 && length != group) continue;
        const std::vector<float> x = random_values(l, rng);
        if (variant.calibrated) l.variant.constant = std::fabs(x[0]) / 100 + 1e-8f;
        const Coded got = testing::run(codec, l, x);
        ASSERT_TRUE(got.result.ok()) << testing::text(codec, l);
        expect_bound(codec, l, got, x);
      }
    });
  }
}

// Parameters of an all-equal group are exact where the format can hold the number.
TEST(CodecContract, EqualElementsAndZeros) {
  for (const Codec& codec : codecs()) {
    for_each_axis(codec, [&](bool channel, const Variant& variant) {
      const int group = codec.fixed_group > 0 ? codec.fixed_group : 32;
      Layout l{channel, channel ? 8 : group, group, channel ? group : 2, variant};
      const auto decoded = [&](float value) {
        const std::vector<float> x(size_t(l.tokens) * l.head_dim, value);
        const Coded got = testing::run(codec, l, x);
        EXPECT_TRUE(got.result.ok());
        expect_bound(codec, l, got, x);
        return got.y;
      };
      for (float y : decoded(0.0f)) EXPECT_EQ(y, 0.0f) << codec.name;
      for (float y : decoded(-0.0f)) EXPECT_EQ(y, 0.0f) << codec.name;
      if (variant.calibrated) l.variant.constant = 0.5f;
      const bool exact = codec.params != kernels::ParamKind::bf16_scale_zero &&
                         codec.params != kernels::ParamKind::float_scale_zero &&
                         codec.params != kernels::ParamKind::half_scale &&
                         codec.params != kernels::ParamKind::e4m3_scale && !variant.symmetric;
      const std::vector<float> equal = decoded(-2.0f);
      if (!exact) return;
      for (float y : equal) EXPECT_EQ(y, -2.0f) << codec.name;
    });
  }
}

TEST(CodecContract, NonFiniteInputIsLocated) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Codec& codec : codecs()) {
    for_each_axis(codec, [&](bool channel, const Variant& variant) {
      const int group = codec.fixed_group > 0 ? codec.fixed_group : 16;
      const Layout l{channel, 64, group, channel ? 2 * group : 3, variant};
      for (float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
        for (int token : {0, l.tokens - 1}) {
          std::vector<float> x(size_t(l.tokens) * l.head_dim, 1.0f);
          x[size_t(token) * l.head_dim + 37] = bad;
          const EncodeResult result = testing::run(codec, l, x).result;
          EXPECT_EQ(result.fault, Fault::non_finite) << testing::text(codec, l);
          EXPECT_EQ(result.token, token);
          EXPECT_EQ(result.channel, 37);
        }
      }
    });
  }
}

// The largest finite floats: a typed fault at that element, or a saturated or finite result.
TEST(CodecContract, NothingInfiniteIsEverStored) {
  for (const Codec& codec : codecs()) {
    for_each_axis(codec, [&](bool channel, const Variant& variant) {
      const int group = codec.fixed_group > 0 ? codec.fixed_group : 16;
      const Layout l{channel, 64, group, channel ? group : 1, variant};
      for (float large : {7e4f, 3e7f, 1e30f, std::numeric_limits<float>::max()}) {
        for (float sign : {1.0f, -1.0f}) {
          std::vector<float> x(size_t(l.tokens) * l.head_dim, 1.0f);
          x[37] = sign * large;
          const Coded got = testing::run(codec, l, x);
          if (!got.result.ok()) {
            EXPECT_EQ(got.result.token, 0) << testing::text(codec, l);
            EXPECT_EQ(got.result.channel, 37) << testing::text(codec, l);
            EXPECT_EQ(got.result.value, x[37]);
          }
          for (float y : got.y) ASSERT_TRUE(std::isfinite(y)) << testing::text(codec, l);
        }
      }
    });
  }
}

// Code i of a row, read bit by bit.
unsigned code_of(const uint8_t* row, int i, int bits) {
  unsigned code = 0;
  for (int b = 0; b < bits; ++b) {
    const int at = i * bits + b;
    code |= (row[at / 8] >> (at % 8) & 1u) << b;
  }
  return code;
}

// A channel of a block is a row of its tokens: equal codes, equal parameters, equal values.
TEST(CodecContract, ABlockIsItsTransposedRows) {
  std::mt19937 rng(fresh_seed());
  for (const Codec& codec : codecs()) {
    if (codec.encode_row == nullptr || codec.encode_block == nullptr) continue;
    for (const Variant& variant : testing::variants(codec)) {
      for (int tokens : {8, 32, 64, 128}) {
        const int head_dim = 80;
        const Layout block{true, head_dim, tokens, tokens, variant};
        const Layout rows{false, tokens, tokens, head_dim, variant};
        const std::vector<float> x = random_values(block, rng);
        std::vector<float> transposed(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          transposed[i % head_dim * tokens + i / head_dim] = x[i];
        }
        const Coded b = testing::run(codec, block, x);
        const Coded r = testing::run(codec, rows, transposed);
        ASSERT_TRUE(b.result.ok() && r.result.ok());
        EXPECT_EQ(b.params, r.params) << testing::text(codec, block);
        for (int t = 0; t < tokens; ++t) {
          for (int d = 0; d < head_dim; ++d) {
            const uint8_t* block_row = b.codes.data() + t * codec.row_bytes(head_dim);
            const uint8_t* row = r.codes.data() + d * codec.row_bytes(tokens);
            ASSERT_EQ(code_of(block_row, d, codec.bits), code_of(row, t, codec.bits));
            ASSERT_TRUE(same(b.y[t * head_dim + d], r.y[d * tokens + t]));
          }
        }
      }
    }
  }
}

// A missing scale is an error, never 1: sgl-cookbook issue 237, SGLang issue 22671 (AIME 95 -> 77
// with scales that default to 1), TensorRT-LLM pull request 16916 (GSM8K 96 -> 74).
TEST(CodecContract, ACalibratedScaleMustBeGiven) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x(64, 1.0f);
  for (const Codec& codec : codecs()) {
    if (codec.calibration == Calibration::never) continue;
    for (float constant : {0.0f, -1.0f, nan, std::numeric_limits<float>::infinity(), 3e38f}) {
      const Layout l{false, 64, codec.fixed_group > 0 ? codec.fixed_group : 64, 1,
                     Variant{.calibrated = true, .constant = constant}};
      EXPECT_EQ(testing::run(codec, l, x).result.fault, Fault::scale_missing)
          << codec.name << " " << constant;
    }
    if (codec.calibration != Calibration::required) continue;
    const Layout plain{false, 64, codec.fixed_group, 1, Variant{}};
    EXPECT_FALSE(codec.supports({}));
    EXPECT_EQ(testing::run(codec, plain, x).result.fault, Fault::scale_missing) << codec.name;
  }
}

TEST(CodecTable, EveryEntryIsCompleteAndFoundByName) {
  for (const Codec& codec : codecs()) {
    EXPECT_EQ(find_codec(codec.name), &codec);
    EXPECT_EQ(codec.encode_row == nullptr, codec.decode_row == nullptr);
    EXPECT_EQ(codec.encode_block == nullptr, codec.decode_block == nullptr);
    EXPECT_TRUE(codec.encode_row != nullptr || codec.encode_block != nullptr);
    EXPECT_FALSE(testing::variants(codec).empty());
  }
  EXPECT_EQ(codecs().size(), 15u);
  EXPECT_EQ(find_codec("base"), nullptr);
}

}  // namespace
}  // namespace kvsweep::codec
