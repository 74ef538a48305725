// The integer codec against the numpy rewrite of reference.py, bit for bit, and its properties on
// inputs that are new in every run.
#include "worker/codec/affine_int.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "tests/worker/codec/golden_file.hpp"
#include "worker/codec/half.hpp"

namespace kvsweep::codec {
namespace {

using testing::GoldenCase;

const Codec& codec_of(int bits) {
  return *find_codec("int" + std::to_string(bits));
}

struct Coded {
  EncodeResult result;
  std::vector<uint8_t> codes;
  std::vector<uint16_t> params;
  std::vector<float> decoded;
};

// Guard bytes behind the outputs must survive.
Coded run(bool channel, int bits, int tokens, int head_dim, int group, const float* x) {
  const Codec& codec = codec_of(bits);
  const int64_t row_bytes = int64_t{head_dim} * bits / 8;
  const int per_row = (head_dim + group - 1) / group;
  const size_t code_bytes = tokens * row_bytes;
  const size_t param_count = 2 * (channel ? head_dim : tokens * per_row);
  Coded out{{},
            std::vector<uint8_t>(code_bytes + 8, 0xaa),
            std::vector<uint16_t>(param_count + 4, 0xbbbb),
            std::vector<float>(size_t(tokens) * head_dim)};
  auto* bytes = reinterpret_cast<uint8_t*>(out.params.data());
  if (channel) {
    const BlockShape shape{head_dim, tokens, row_bytes};
    out.result = codec.encode_block(shape, x, out.codes.data(), bytes);
    if (out.result.ok()) {
      codec.decode_block(shape, out.codes.data(), bytes, out.decoded.data());
    }
  } else {
    const RowShape shape{head_dim, group};
    for (int t = 0; t < tokens && out.result.ok(); ++t) {
      uint8_t* codes = out.codes.data() + t * row_bytes;
      uint8_t* params = bytes + int64_t{4} * t * per_row;
      out.result = codec.encode_row(shape, x + int64_t{t} * head_dim, codes, params);
      if (!out.result.ok()) break;
      codec.decode_row(shape, codes, params, out.decoded.data() + int64_t{t} * head_dim);
    }
  }
  for (size_t i = code_bytes; i < out.codes.size(); ++i) EXPECT_EQ(out.codes[i], 0xaa);
  for (size_t i = param_count; i < out.params.size(); ++i) EXPECT_EQ(out.params[i], 0xbbbb);
  out.codes.resize(code_bytes);
  out.params.resize(param_count);
  return out;
}

std::vector<float> floats(const std::vector<uint32_t>& bits) {
  std::vector<float> values;
  for (uint32_t b : bits) values.push_back(std::bit_cast<float>(b));
  return values;
}

void expect_equal(const GoldenCase& c) {
  SCOPED_TRACE(c.name + (c.channel_axis ? " channel" : " token") + " bits " +
               std::to_string(c.bits) + " tokens " + std::to_string(c.tokens) + " head_dim " +
               std::to_string(c.head_dim) + " group " + std::to_string(c.group));
  const std::vector<float> x = floats(c.x);
  ASSERT_EQ(x.size(), size_t(c.tokens) * c.head_dim);
  const Coded got = run(c.channel_axis, c.bits, c.tokens, c.head_dim, c.group, x.data());
  ASSERT_TRUE(got.result.ok());
  EXPECT_EQ(std::vector<uint32_t>(got.params.begin(), got.params.end()), c.params);
  EXPECT_EQ(std::vector<uint32_t>(got.codes.begin(), got.codes.end()), c.codes);
  std::vector<uint32_t> y;
  for (float v : got.decoded) y.push_back(std::bit_cast<uint32_t>(v));
  EXPECT_EQ(y, c.y);
}

TEST(AffineInt, EqualsTheCommittedNumpyRewriteBitForBit) {
  const auto cases =
      testing::read_golden(std::string(KVSWEEP_TEST_DIR) + "/goldens/affine_int.txt");
  ASSERT_GT(cases.size(), 150u);
  for (const GoldenCase& c : cases) expect_equal(c);
}

TEST(AffineInt, EqualsTheNumpyRewriteOnFreshInputs) {
  const std::string python =
      std::string("PYTHONPATH=\"") + KVSWEEP_SOURCE_DIR + "/.deps/python:$PYTHONPATH\" python3 ";
  if (std::system((python + "-c 'import numpy' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "python3 cannot import numpy; the committed cases were compared";
  }
  char path[] = "/tmp/kvsweep_codec_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  close(fd);
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  const std::string command = python + "\"" + KVSWEEP_TEST_DIR +
                              "/reference.py\" --random 60 --seed " + std::to_string(seed) + " " +
                              path;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto cases = testing::read_golden(path);
  EXPECT_EQ(cases.size(), 60u);
  for (const GoldenCase& c : cases) expect_equal(c);
  unlink(path);
}

// |decode(encode(x)) - x| <= stored scale / 2 + the rounding the header states, in double.
void expect_half_step(const Coded& got, bool channel, int bits, int tokens, int head_dim, int group,
                      const std::vector<float>& x) {
  const int per_row = (head_dim + group - 1) / group;
  const double levels = (1 << bits) - 1;
  for (int t = 0; t < tokens; ++t) {
    for (int d = 0; d < head_dim; ++d) {
      const int64_t at = int64_t{t} * head_dim + d;
      const double scale = half_to_float(got.params[2 * (channel ? d : t * per_row + d / group)]);
      const double slack = 4 * 0x1p-24 * (std::fabs(x[at]) + levels * scale);
      ASSERT_LE(std::fabs(double(got.decoded[at]) - double(x[at])), scale / 2 + slack)
          << "token " << t << " channel " << d << " x " << x[at] << " bits " << bits;
    }
  }
}

TEST(AffineInt, DecodedIsWithinHalfAStepOfTheOriginal) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-9, 4);
  const int groups[] = {8, 32, 64, 128, 256};
  for (int i = 0; i < 600; ++i) {
    const int bits = 2 << (rng() % 3);
    const bool channel = rng() % 2 == 0;
    const int head_dim = 8 * int(1 + rng() % 32);
    const int group = std::min(groups[rng() % 5], head_dim);
    const int tokens = 1 + int(rng() % 40);
    const float scale = std::pow(10.0f, exponent(rng));
    const float offset = rng() % 2 ? 0.0f : 100.0f * normal(rng);
    std::vector<float> x(size_t(tokens) * head_dim);
    for (float& v : x) v = std::clamp(normal(rng) * scale + offset, -65504.0f, 65504.0f);
    const Coded got = run(channel, bits, tokens, head_dim, group, x.data());
    ASSERT_TRUE(got.result.ok());
    expect_half_step(got, channel, bits, tokens, head_dim, group, x);
  }
}

TEST(AffineInt, WorkedExampleOfTheHeader) {
  const float x[] = {1, 2, 4, 1};
  const Coded got = run(false, 2, 1, 4, 4, x);
  ASSERT_TRUE(got.result.ok());
  EXPECT_EQ(got.params[0], float_to_half(1.0f));
  EXPECT_EQ(got.params[1], float_to_half(1.0f));
  EXPECT_EQ(got.codes[0], 0 | 1 << 2 | 3 << 4 | 0 << 6);
  EXPECT_EQ(got.decoded, std::vector<float>(x, x + 4));
}

TEST(AffineInt, RangeZeroDecodesToTheStoredMinimum) {
  const std::vector<float> x(8, -0.25f);
  const Coded got = run(false, 4, 1, 8, 8, x.data());
  ASSERT_TRUE(got.result.ok());
  EXPECT_EQ(got.params[0], 0);
  EXPECT_EQ(got.codes, std::vector<uint8_t>(4, 0));
  EXPECT_EQ(got.decoded, x);
}

TEST(AffineInt, NonFiniteInputIsLocated) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (int bits : {8, 4, 2}) {
      std::vector<float> x(4 * 16, 1.0f);
      x[2 * 16 + 5] = bad;
      const Coded block = run(true, bits, 4, 16, 16, x.data());
      EXPECT_EQ(block.result.fault, Fault::non_finite);
      EXPECT_EQ(block.result.token, 2);
      EXPECT_EQ(block.result.channel, 5);
      const Coded row = run(false, bits, 1, 16, 8, x.data() + 2 * 16);
      EXPECT_EQ(row.result.fault, Fault::non_finite);
      EXPECT_EQ(row.result.channel, 5);
    }
  }
}

TEST(AffineInt, ParametersBeyondFp16AreRefusedNotStored) {
  std::vector<float> x(2 * 16, 0.0f);
  x[16 + 9] = -65536.0f;
  const Coded low = run(true, 8, 2, 16, 16, x.data());
  EXPECT_EQ(low.result.fault, Fault::offset_range);
  EXPECT_EQ(low.result.token, 1);
  EXPECT_EQ(low.result.channel, 9);
  EXPECT_EQ(low.result.value, -65536.0f);
  x[16 + 9] = 255.5f * 65504.0f;  // step above 65504 at 8 bits
  const Coded high = run(false, 8, 1, 16, 8, x.data() + 16);
  EXPECT_EQ(high.result.fault, Fault::scale_range);
  EXPECT_EQ(high.result.channel, 9);
  x[16 + 9] = 255.0f * 65504.0f;  // exactly the largest step
  const Coded fits = run(false, 8, 1, 16, 8, x.data() + 16);
  EXPECT_TRUE(fits.result.ok());
  EXPECT_EQ(fits.params[2], 0x7bff);
  EXPECT_EQ(fits.decoded[9], 255.0f * 65504.0f);
}

}  // namespace
}  // namespace kvsweep::codec
