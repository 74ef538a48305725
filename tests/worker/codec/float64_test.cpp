// The native codecs again in float64, from the definitions: parameters are the tightest that the
// stored type can hold, and every decoded value is the nearest of the grid they span, up to fp32's
// rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>

#include "tests/worker/codec/codec_runs.hpp"

namespace kvsweep::codec {
namespace {

using testing::Coded;
using testing::Layout;

constexpr int kHeadDim = 128;

struct Group {
  double low = 0;
  double high = 0;
  double largest = 0;  // magnitude
};

Group group_of(const float* x, int count) {
  Group g{x[0], x[0], std::fabs(x[0])};
  for (int i = 1; i < count; ++i) {
    g.low = std::min(g.low, double(x[i]));
    g.high = std::max(g.high, double(x[i]));
    g.largest = std::max(g.largest, double(std::fabs(x[i])));
  }
  return g;
}

// The half is at least `wanted`, and the half below it is not (up to one fp32 rounding).
void expect_smallest_half_above(uint16_t half, double wanted) {
  EXPECT_GE(half_to_float(half), wanted * (1 - 0x1p-23));
  if (half <= kHalfTiny) return;
  EXPECT_LT(half_to_float(static_cast<uint16_t>(half - 1)), wanted * (1 + 0x1p-23));
}

// Magnitudes of a small float, from its definition.
std::vector<double> grid_of(int mantissa, int bias, int count) {
  std::vector<double> grid;
  for (int p = 0; p < count; ++p) {
    const int exponent = p >> mantissa, m = p & ((1 << mantissa) - 1);
    grid.push_back(exponent == 0 ? std::ldexp(m, 1 - bias - mantissa)
                                 : std::ldexp((1 << mantissa) + m, exponent - bias - mantissa));
  }
  return grid;
}

double nearest(const std::vector<double>& grid, double magnitude) {
  double best = grid[0];
  for (double v : grid) {
    if (std::fabs(v - magnitude) < std::fabs(best - magnitude)) best = v;
  }
  return best;
}

// |x^ - x| may exceed the float64 error by the rounding of a few fp32 operations only.
void expect_as_near(double decoded, double ideal, double x, double size) {
  EXPECT_LE(std::fabs(decoded - x), std::fabs(ideal - x) + 4 * 0x1p-24 * (std::fabs(x) + size))
      << x << " -> " << decoded << ", in float64 " << ideal;
}

void check_integers(const Codec& codec, const Layout& l, const Coded& got, const float* x) {
  const int levels = (1 << codec.bits) - 1, limit = levels / 2;
  for (int begin = 0, g = 0; begin < kHeadDim; begin += l.group, ++g) {
    const Group group = group_of(x + begin, l.group);
    const int64_t at = int64_t{g} * codec.param_bytes(l.variant);
    const auto scale_half = testing::stored<uint16_t>(got.params, at);
    const double scale = half_to_float(scale_half);
    double min = 0;
    if (l.variant.symmetric) {
      expect_smallest_half_above(scale_half, group.largest / limit);
    } else {
      const auto min_half = testing::stored<uint16_t>(got.params, at + 2);
      min = half_to_float(min_half);
      EXPECT_LE(min, group.low);
      EXPECT_EQ(min_half, float_to_half_down(static_cast<float>(group.low) + 0.0f));
      expect_smallest_half_above(scale_half, (group.high - min) / levels);
    }
    for (int i = begin; i < begin + l.group; ++i) {
      const double steps = scale == 0 ? 0 : std::nearbyint((x[i] - min) / scale);
      const double code = l.variant.symmetric ? std::clamp(steps, -double(limit), double(limit))
                                              : std::clamp(steps, 0.0, double(levels));
      expect_as_near(got.y[i], code * scale + min, x[i], levels * scale);
    }
  }
}

void check_floats(const Codec& codec, const Layout& l, const Coded& got, const float* x) {
  const bool wide = codec.code == kernels::CodeKind::e5m2;
  const bool four = codec.code == kernels::CodeKind::e2m1;
  const std::vector<double> e4m3 = grid_of(3, 7, 0x7f);
  const std::vector<double> grid = four ? grid_of(1, 1, 8) : wide ? grid_of(2, 15, 0x7c) : e4m3;
  for (int begin = 0, g = 0; begin < kHeadDim; begin += l.group, ++g) {
    const Group group = group_of(x + begin, l.group);
    double scale = l.variant.constant;
    if (codec.name == "mxfp4") {
      EXPECT_EQ(int(got.params[g]) - 127, std::ilogb(group.largest) - 2);
      scale = std::ldexp(1.0, got.params[g] - 127);
    } else if (codec.name == "nvfp4") {
      const double wanted = group.largest / 6 / double(l.variant.constant);
      const double stored = e4m3[got.params[g]];
      const double ideal = std::max(nearest(e4m3, wanted), 0x1p-9);
      EXPECT_LE(std::fabs(stored - wanted), std::fabs(ideal - wanted) + 1e-6 * wanted);
      scale = stored * double(l.variant.constant);
    } else if (!l.variant.calibrated) {
      const auto half = testing::stored<uint16_t>(got.params, int64_t{2} * g);
      expect_smallest_half_above(half, group.largest / grid.back());
      scale = half_to_float(half);
    }
    for (int i = begin; i < begin + l.group; ++i) {
      const double ideal = std::copysign(nearest(grid, std::fabs(x[i]) / scale) * scale, x[i]);
      expect_as_near(got.y[i], ideal, x[i], scale);
    }
  }
}

TEST(Float64, NativeCodecsAreAsNearAsTheRewrite) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-6, 4), mean(32, 1000);
  for (const Codec& codec : codecs()) {
    if (codec.encode_row == nullptr || codec.params == kernels::ParamKind::float_scale_zero ||
        codec.params == kernels::ParamKind::bf16_scale_zero) {
      continue;
    }
    for (Variant variant : testing::variants(codec)) {
      for (int round = 0; round < 60; ++round) {
        const float size = std::pow(10.0f, exponent(rng));
        const float offset = round % 2 == 0 ? 0.0f : mean(rng);
        std::vector<float> x(kHeadDim);
        for (float& v : x) v = normal(rng) * size + offset;
        if (variant.calibrated) variant.constant = (offset + 3 * size) / 1000;
        const std::vector<int> groups = testing::row_groups(codec, kHeadDim);
        const Layout l{false, kHeadDim, groups[rng() % groups.size()], 1, variant};
        SCOPED_TRACE(testing::text(codec, l) + " round " + std::to_string(round));
        const Coded got = testing::run(codec, l, x);
        ASSERT_TRUE(got.result.ok());
        const bool integers = codec.params == kernels::ParamKind::half_scale_min;
        integers ? check_integers(codec, l, got, x.data()) : check_floats(codec, l, got, x.data());
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace kvsweep::codec
