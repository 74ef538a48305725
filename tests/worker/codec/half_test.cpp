// All 65,536 patterns of both 16-bit types against values built from their fields, and rounding
// against a search for the nearest neighbour in double.
#include "worker/codec/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace kvsweep::codec {
namespace {

// (-1)^s * 2^(e - 15) * (1 + m / 1024), or m * 2^-24 for e = 0, from the definition of binary16.
double half_value(int pattern) {
  const int exponent = (pattern >> 10) & 31;
  const int mantissa = pattern & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return pattern & 0x8000 ? -magnitude : magnitude;
}

bool is_special(int pattern) {
  return (pattern & 0x7c00) == 0x7c00;
}

TEST(Half, EveryPatternHasTheValueOfItsFieldsAndComesBack) {
  for (int p = 0; p < 65536; ++p) {
    const float value = half_to_float(static_cast<uint16_t>(p));
    if (!is_special(p)) {
      ASSERT_EQ(double(value), half_value(p)) << p;
      ASSERT_EQ(std::signbit(value), (p & 0x8000) != 0) << p;
      ASSERT_EQ(float_to_half(value), p);
      ASSERT_EQ(float_to_half_down(value), p == 0x8000 ? 0x8000 : p);
      ASSERT_EQ(float_to_half_up(value), p);
    } else if ((p & 0x3ff) == 0) {
      ASSERT_TRUE(std::isinf(value));
      ASSERT_EQ(float_to_half(value), p);
    } else {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    }
  }
}

// Between neighbouring halves a < b: a quarter, the tie and three quarters of the way, and one
// float beside the tie.
TEST(Half, RoundsToNearestEvenAndInBothDirections) {
  for (int p = 0; p < 0x7bff; ++p) {
    const double a = half_value(p);
    const double b = half_value(p + 1);
    const float tie = static_cast<float>((a + b) / 2);
    const int even = p % 2 == 0 ? p : p + 1;
    const float infinity = std::numeric_limits<float>::infinity();
    ASSERT_EQ(float_to_half(tie), even) << p;
    ASSERT_EQ(float_to_half(std::nextafter(tie, -infinity)), p);
    ASSERT_EQ(float_to_half(std::nextafter(tie, infinity)), p + 1);
    ASSERT_EQ(float_to_half(-tie), even | 0x8000);
    for (double t : {0.25, 0.5, 0.75}) {
      const float x = static_cast<float>(a + t * (b - a));
      ASSERT_EQ(float_to_half_down(x), p);
      ASSERT_EQ(float_to_half_up(x), p + 1);
      ASSERT_EQ(float_to_half_down(-x), (p + 1) | 0x8000);
      ASSERT_EQ(float_to_half_up(-x), p | 0x8000);
    }
  }
}

TEST(Half, EndsOfTheRange) {
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(3e38f), 0x7c00);
  EXPECT_EQ(float_to_half_down(65535.0f), 0x7bff);
  EXPECT_EQ(float_to_half_down(3e38f), 0x7bff);
  EXPECT_EQ(float_to_half_up(65505.0f), 0x7c00);
  EXPECT_EQ(float_to_half_down(-65505.0f), 0xfc00);
  EXPECT_EQ(float_to_half(0x1p-26f), 0);
  EXPECT_EQ(float_to_half_up(0x1p-149f), kHalfTiny);
  EXPECT_EQ(float_to_half_down(-0x1p-149f), 0x8000 | kHalfTiny);
  EXPECT_EQ(float_to_half_down(0x1p-149f), 0);
}

TEST(Bf16, EveryPatternIsTheUpperHalfOfAFloat) {
  for (int p = 0; p < 65536; ++p) {
    const float value = bf16_to_float(static_cast<uint16_t>(p));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value))));
      continue;
    }
    // (-1)^s * 2^(e - 127) * (1 + m / 128), or m * 2^-133 for e = 0.
    const int exponent = (p >> 7) & 255;
    if (exponent != 255) {
      const double magnitude =
          exponent == 0 ? std::ldexp(p & 127, -133) : std::ldexp(128 + (p & 127), exponent - 134);
      ASSERT_EQ(double(value), p & 0x8000 ? -magnitude : magnitude);
    }
    ASSERT_EQ(float_to_bf16(value), p);
  }
}

TEST(Bf16, RoundsToNearestEven) {
  for (int p = 0; p < 0x7f7f; ++p) {
    const float a = bf16_to_float(static_cast<uint16_t>(p));
    const float tie = a + (bf16_to_float(static_cast<uint16_t>(p + 1)) - a) / 2;
    ASSERT_EQ(float_to_bf16(tie), p % 2 == 0 ? p : p + 1) << p;
    ASSERT_EQ(float_to_bf16(std::nextafter(tie, 0.0f)), p);
    ASSERT_EQ(float_to_bf16(-tie), (p % 2 == 0 ? p : p + 1) | 0x8000);
  }
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace kvsweep::codec
