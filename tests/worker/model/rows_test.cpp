// Row arithmetic against plain loops in 64 bits.
#include "worker/model/rows.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.hpp"
#include "worker/codec/half.hpp"

namespace kvsweep::model {
namespace {

constexpr int64_t kWidths[] = {1, 2, 15, 16, 17, 31, 48, 576, 1001};

std::vector<float> random_values(int64_t count, uint64_t seed, double low, double high) {
  Rng rng(seed, "rows");
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(low + (high - low) * rng.uniform()));
  }
  return values;
}

TEST(Rows, ExpWithinThreeUnitsInTheLastPlace) {
  for (double x = -87; x <= 88; x += 0.0371) {
    const float argument = static_cast<float>(x);
    const double expected = std::exp(static_cast<double>(argument));
    EXPECT_NEAR(fast_exp(argument) / expected, 1.0, 2e-7) << argument;
  }
  EXPECT_EQ(fast_exp(0), 1.0f);
  EXPECT_EQ(fast_exp(-88), 0.0f);
  EXPECT_EQ(fast_exp(-std::numeric_limits<float>::infinity()), 0.0f);
}

// All 65536 patterns of both types, at an odd address, against the codecs' own conversions.
TEST(Rows, WidensEveryPattern) {
  std::vector<uint8_t> bytes(1 + 2 * 65536);
  for (int pattern = 0; pattern < 65536; ++pattern) {
    bytes[1 + 2 * pattern] = static_cast<uint8_t>(pattern & 255);
    bytes[2 + 2 * pattern] = static_cast<uint8_t>(pattern >> 8);
  }
  std::vector<float> halves(65536), bf16(65536);
  widen_halves(bytes.data() + 1, 65536, halves.data());
  widen_bf16(bytes.data() + 1, 65536, bf16.data());
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const auto word = static_cast<uint16_t>(pattern);
    const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
    ASSERT_EQ(bits(halves[pattern]), bits(codec::half_to_float(word))) << pattern;
    ASSERT_EQ(bits(bf16[pattern]), bits(codec::bf16_to_float(word))) << pattern;
  }
}

TEST(Rows, RmsNorm) {
  for (const int64_t width : kWidths) {
    const auto x = random_values(width, 1, -3, 3);
    const auto weight = random_values(width, 2, 0.5, 1.5);
    std::vector<float> out(x.size());
    rms_norm(x.data(), weight.data(), 1e-5f, width, out.data());
    double sum = 0;
    for (const float value : x) sum += static_cast<double>(value) * value;
    const double factor = 1 / std::sqrt(sum / static_cast<double>(width) + 1e-5);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(out[i], weight[i] * x[i] * factor, 2e-6) << width;
    }
  }
}

TEST(Rows, SiluTimes) {
  for (const int64_t width : kWidths) {
    const auto gate = random_values(width, 3, -100, 100);
    const auto up = random_values(width, 4, -2, 2);
    std::vector<float> out(gate.size());
    silu_times(gate.data(), up.data(), width, out.data());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      const double expected = g / (1 + std::exp(-g)) * up[i];
      EXPECT_NEAR(out[i], expected, 1e-6 * (1 + std::fabs(expected)));
    }
  }
}

TEST(Rows, GeluTanhTimes) {
  for (const int64_t width : kWidths) {
    const auto gate = random_values(width, 8, -20, 20);
    const auto up = random_values(width, 9, -2, 2);
    std::vector<float> out(gate.size());
    gelu_tanh_times(gate.data(), up.data(), width, out.data());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      const double inner = std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
      const double expected = g / 2 * (1 + std::tanh(inner)) * up[i];
      EXPECT_NEAR(out[i], expected, 2e-6 * (1 + std::fabs(expected))) << g;
    }
  }
  const std::vector<float> gate = {-1e4f, 1e4f, 0.0f, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> up = {1, 1, 1, 1};
  std::vector<float> out(4);
  gelu_tanh_times(gate.data(), up.data(), 4, out.data());
  EXPECT_NEAR(out[0], 0, 1e-30);
  EXPECT_EQ(out[1], 1e4f);
  EXPECT_EQ(out[2], 0.0f);
  EXPECT_TRUE(std::isnan(out[3]));
}

TEST(Rows, SoftCap) {
  for (const int64_t width : kWidths) {
    const auto x = random_values(width, 10, -200, 200);
    for (const float cap : {0.5f, 30.0f, 50.0f}) {
      auto out = x;
      soft_cap(out.data(), cap, width);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(out[i], cap * std::tanh(static_cast<double>(x[i]) / cap), 3e-7 * cap) << x[i];
      }
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {infinity, -infinity, 0.0f, std::numeric_limits<float>::quiet_NaN()};
  soft_cap(x.data(), 30.0f, 4);
  EXPECT_EQ(x[0], 30.0f);
  EXPECT_EQ(x[1], -30.0f);
  EXPECT_EQ(x[2], 0.0f);
  EXPECT_TRUE(std::isnan(x[3]));
}

TEST(Rows, RotateTurnsPairsOfHalves) {
  // Two heads of 4 channels, angles 90 and 0 degrees: (a, b, c, d) -> (-c, b, a, d).
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> cos_sin = {0, 1, 1, 0};
  std::vector<float> out(8);
  rotate(x.data(), cos_sin.data(), 2, 2, out.data());
  EXPECT_EQ(out, (std::vector<float>{-3, 2, 1, 4, -7, 6, 5, 8}));
}

TEST(Rows, MaxOrNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t width : kWidths) {
    auto x = random_values(width, 5, -9, -1);
    for (size_t at = 0; at < x.size(); at += 7) {
      const float before = x[at];
      x[at] = 2.5f;
      EXPECT_EQ(max_or_nan(x.data(), width), 2.5f);
      EXPECT_TRUE(all_finite(x.data(), width));
      for (const float bad : {nan, std::numeric_limits<float>::infinity()}) {
        x[at] = bad;
        EXPECT_FALSE(std::isfinite(max_or_nan(x.data(), width))) << width << " " << at;
        EXPECT_FALSE(all_finite(x.data(), width));
      }
      x[at] = before;
    }
  }
}

TEST(Rows, SumExp) {
  for (const int64_t width : kWidths) {
    const auto x = random_values(width, 6, -20, 4);
    double expected = 0;
    for (const float value : x) expected += std::exp(static_cast<double>(value) - 4);
    EXPECT_NEAR(sum_exp(x.data(), 4, width) / expected, 1, 3e-7);
  }
}

}  // namespace
}  // namespace kvsweep::model
