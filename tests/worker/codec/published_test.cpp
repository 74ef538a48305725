// Figures that quantization.md measured on the published codecs (its sections 1.1 and 1.3), on
// Gaussian values; and what our scales of fp4 do by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/worker/codec/codec_runs.hpp"

namespace kvsweep::codec {
namespace {

using testing::Coded;
using testing::Layout;

std::vector<float> gaussian(size_t count, float mean) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal(mean, 1.0f);
  std::vector<float> x(count);
  for (float& v : x) v = normal(rng);
  return x;
}

double rms(std::string_view name, const Layout& l, const std::vector<float>& x) {
  const Coded got = testing::run(*find_codec(name), l, x);
  EXPECT_TRUE(got.result.ok()) << name;
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(double(got.y[i]) - x[i], 2);
  return std::sqrt(sum / double(x.size()));
}

// 128 Gaussian values, 8 bits, RMS error bf16/fp32 by group mean: 0 -> .0068/.0058; 32 ->
// .044/.0058; 128 -> .133/.0057. One group there, 400 groups here: hence the tolerance of 15 %. The
// inputs are bf16 numbers: rounding them first is no fault of the codec's.
TEST(Kvtuner, Bf16ArithmeticIsLossyOnOffsetGroups) {
  const struct {
    float mean;
    double bf16;
    double fp32;
  } kRows[] = {{0, .0068, .0058}, {32, .044, .0058}, {128, .133, .0057}};
  const Layout l{false, 128, 128, 400, {}};
  for (const auto& row : kRows) {
    std::vector<float> x = gaussian(size_t(400) * 128, row.mean);
    EXPECT_NEAR(rms("int8-kvtuner", l, x), row.fp32, .0004) << row.mean;
    for (float& v : x) v = bf16_to_float(float_to_bf16(v));
    EXPECT_NEAR(rms("int8-kvtuner-bf16", l, x), row.bf16, .15 * row.bf16) << row.mean;
  }
}

// Gaussian: element-10 MSE .728 against .0149 for the others, clipped 50 % of the time, mean error
// of .080 over the word; exact INT3 g32 .028, INT4 g32 .006.
TEST(Kvmix, TheEleventhElementIsClipped) {
  const Layout words{true, 64, 11, 11 * 200, {}};
  const std::vector<float> x = gaussian(size_t(words.tokens) * 64, 0);
  const Coded got = testing::run(*find_codec("int3-11pack"), words, x);
  double last = 0, others = 0, clipped = 0;
  const double lasts = 200 * 64;
  for (size_t i = 0; i < x.size(); ++i) {
    const double square = std::pow(double(got.y[i]) - x[i], 2);
    const bool is_last = i / 64 % 11 == 10;
    (is_last ? last : others) += square;
    if (is_last) clipped += x[i] - got.y[i] > 0.25 ? 1 : 0;  // above half a step of about 0.45
  }
  EXPECT_NEAR(last / lasts, .728, .03);
  EXPECT_NEAR(others / (10 * lasts), .0149, .0006);
  EXPECT_NEAR((last + others) / (11 * lasts), .080, .003);
  EXPECT_NEAR(clipped / lasts, .5, .08);
  const Layout exact{true, 64, 32, 32 * 64, {}};
  const std::vector<float> y = gaussian(size_t(exact.tokens) * 64, 0);
  EXPECT_NEAR(std::pow(rms("int3", exact, y), 2), .028, .001);
  EXPECT_NEAR(std::pow(rms("int4", exact, y), 2), .006, .0003);
}

// By the header: scale E4M3(6 / 6) = 1 and the ties 0.25, 2.5 and 5 go to even codes.
TEST(Nvfp4, WorkedExample) {
  std::vector<float> x(16, 0.0f);
  x[0] = 6;
  x[1] = 2.5f;
  x[2] = -0.25f;
  x[3] = 5;
  const Layout l{false, 16, 16, 1, Variant{.calibrated = true, .constant = 1}};
  const Coded got = testing::run(*find_codec("nvfp4"), l, x);
  EXPECT_EQ(got.params, std::vector<uint8_t>{0x38});  // 1.0
  EXPECT_EQ(got.codes[0], 7 | 4 << 4);
  EXPECT_EQ(got.codes[1], 8 | 6 << 4);
  EXPECT_EQ(got.y[1], 2.0f);
  EXPECT_TRUE(std::signbit(got.y[2]));
  EXPECT_EQ(got.y[3], 4.0f);
}

// max |x| = 7.5: floor(log2 7.5) - 2 = 0, so 7.5 saturates to 6.
TEST(Mxfp4, LargestElementsSaturate) {
  std::vector<float> x(32, 0.0f);
  x[0] = -7.5f;
  x[1] = 5;
  const Layout l{false, 32, 32, 1, {}};
  const Coded got = testing::run(*find_codec("mxfp4"), l, x);
  EXPECT_EQ(got.params, std::vector<uint8_t>{127});
  EXPECT_EQ(got.y[0], -6.0f);
  EXPECT_EQ(got.y[1], 4.0f);
  x[0] = 8;  // the next scale
  EXPECT_EQ(testing::run(*find_codec("mxfp4"), l, x).params, std::vector<uint8_t>{128});
}

TEST(Symmetric, WorkedExample) {
  const std::vector<float> x = {-7, 3.5f, 0, 7};
  const Layout l{false, 4, 4, 1, Variant{.symmetric = true}};
  const Coded got = testing::run(*find_codec("int4"), l, x);
  EXPECT_EQ(testing::stored<uint16_t>(got.params, 0), float_to_half(1.0f));
  EXPECT_EQ(got.codes[0], 1 | 12 << 4);
  EXPECT_EQ(got.codes[1], 8 | 15 << 4);
  EXPECT_EQ(got.y, (std::vector<float>{-7, 4, 0, 7}));
}

// All scales and all codes: E4M3 scale x E2M1 code is exact with tensor scale 1.
TEST(Nvfp4, DecodesEveryScaleAndCode) {
  const Codec& codec = *find_codec("nvfp4");
  constexpr double kValues[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
  std::vector<uint8_t> codes(8);
  for (int i = 0; i < 8; ++i) codes[i] = static_cast<uint8_t>(2 * i | (2 * i + 1) << 4);
  const Layout l{false, 16, 16, 1, Variant{.calibrated = true, .constant = 1}};
  for (int scale = 0; scale < 0x7f; ++scale) {
    const auto byte = static_cast<uint8_t>(scale);
    const int exponent = scale >> 3, mantissa = scale & 7;
    const double block =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    const std::vector<float> y = testing::decode(codec, l, codes.data(), &byte);
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(double(y[i]), (i < 8 ? 1 : -1) * kValues[i % 8] * block) << scale << " " << i;
    }
  }
}

}  // namespace
}  // namespace kvsweep::codec
