// The 8- and 4-bit floating types: every code, every rounding boundary, against torch's table and
// against values written down from the specification.
#include "worker/codec/small_float.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace kvsweep::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The words behind `values e4m3`, `round e5m2` ... in the file that torch's conversions made.
std::vector<uint32_t> torch_line(const std::string& what, const std::string& type) {
  std::ifstream file(std::string(KVSWEEP_TEST_DIR) + "/goldens/fp8_torch.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string first, second, word;
    in >> first >> second;
    if (first != what || second != type) continue;
    std::vector<uint32_t> numbers;
    while (in >> word) numbers.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
    return numbers;
  }
  ADD_FAILURE() << "no line " << what << " " << type;
  return {};
}

struct Type8 {
  const char* name;
  float (*decode)(uint8_t);
  uint8_t (*encode)(float);
  int largest;  // pattern
  float max;
};
constexpr Type8 kTypes[] = {{"e4m3", e4m3_to_float, float_to_e4m3, 0x7e, 448.0f},
                            {"e5m2", e5m2_to_float, float_to_e5m2, 0x7b, 57344.0f}};

TEST(Fp8, EveryCodeHasTorchsValueAndComesBack) {
  for (const Type8& type : kTypes) {
    const std::vector<uint32_t> torch = torch_line("values", type.name);
    ASSERT_EQ(torch.size(), 256u);
    for (int code = 0; code < 256; ++code) {
      const float value = type.decode(static_cast<uint8_t>(code));
      const float expected = std::bit_cast<float>(torch[code]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << type.name << " " << code;
        continue;
      }
      EXPECT_EQ(std::bit_cast<uint32_t>(value), torch[code]) << type.name << " " << code;
      if (std::isinf(expected)) continue;
      EXPECT_EQ(type.encode(value), code) << type.name;
    }
    EXPECT_EQ(type.decode(static_cast<uint8_t>(type.largest)), type.max);
  }
}

TEST(Fp8, RoundsAsTorchAroundEveryMiddle) {
  for (const Type8& type : kTypes) {
    const std::vector<uint32_t> pairs = torch_line("round", type.name);
    ASSERT_EQ(pairs.size(), size_t(2 * 6 * type.largest));
    for (size_t i = 0; i < pairs.size(); i += 2) {
      const float x = std::bit_cast<float>(pairs[i]);
      EXPECT_EQ(type.encode(x), pairs[i + 1]) << type.name << " " << x;
    }
  }
}

TEST(Fp8, SaturatesAtBothEnds) {
  for (const Type8& type : kTypes) {
    for (float x : {type.max, std::nextafter(type.max, kInfinity), 1.05f * type.max, 1e30f,
                    std::numeric_limits<float>::max(), kInfinity}) {
      EXPECT_EQ(type.encode(x), type.largest) << type.name << " " << x;
      EXPECT_EQ(type.encode(-x), type.largest | 0x80) << type.name << " " << x;
    }
    EXPECT_TRUE(std::isnan(type.decode(type.encode(std::numeric_limits<float>::quiet_NaN()))));
    EXPECT_EQ(type.encode(0.0f), 0);
    EXPECT_EQ(type.encode(-0.0f), 0x80);
    EXPECT_EQ(type.encode(1e-30f), 0);
    EXPECT_EQ(type.encode(-1e-30f), 0x80);
    EXPECT_EQ(type.encode(std::numeric_limits<float>::denorm_min()), 0);
  }
  // The smallest values and the ties below them (OFP8 1.0, table 1).
  EXPECT_EQ(e4m3_to_float(1), 0x1p-9f);
  EXPECT_EQ(e5m2_to_float(1), 0x1p-16f);
  EXPECT_EQ(float_to_e4m3(0x1p-10f), 0);
  EXPECT_EQ(float_to_e4m3(std::nextafter(0x1p-10f, 1.0f)), 1);
}

// OCP MX 1.0, table 5: values of the codes 0 .. 7.
constexpr float kE2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

TEST(Fp4, EveryCodeAndEveryBoundary) {
  for (int code = 0; code < 8; ++code) {
    EXPECT_EQ(e2m1_to_float(static_cast<uint8_t>(code)), kE2m1[code]);
    const float negative = e2m1_to_float(static_cast<uint8_t>(code | 8));
    EXPECT_EQ(negative, -kE2m1[code]);
    EXPECT_TRUE(std::signbit(negative));
    EXPECT_EQ(float_to_e2m1(kE2m1[code]), code);
    EXPECT_EQ(float_to_e2m1(-kE2m1[code]), code | 8);
    if (code == 7) break;
    const float middle = (kE2m1[code] + kE2m1[code + 1]) / 2;
    EXPECT_EQ(float_to_e2m1(middle), code % 2 == 0 ? code : code + 1) << middle;
    EXPECT_EQ(float_to_e2m1(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(float_to_e2m1(std::nextafter(middle, kInfinity)), code + 1);
    EXPECT_EQ(float_to_e2m1(-std::nextafter(middle, kInfinity)), (code + 1) | 8);
  }
  for (float x : {6.0f, 6.5f, 7.0f, 1e30f, kInfinity}) {
    EXPECT_EQ(float_to_e2m1(x), 7);
    EXPECT_EQ(float_to_e2m1(-x), 15);
  }
}

TEST(E8m0, EveryCodeIsAPowerOfTwo) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(double(e8m0_to_float(static_cast<uint8_t>(code))), std::ldexp(1.0, code - 127));
  }
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
}

// Random floats of all exponents: the result is the nearest finite neighbour.
TEST(Fp8, IsNearestOnRandomPatterns) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 rng(seed);
  for (const Type8& type : kTypes) {
    for (int i = 0; i < 20000; ++i) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(rng()));
      if (!std::isfinite(x)) continue;
      const uint8_t code = type.encode(x);
      const double error = std::fabs(double(type.decode(code)) - double(x));
      EXPECT_EQ(code >> 7, std::signbit(x) ? 1 : 0);
      const int pattern = code & 0x7f;
      for (int neighbour : {pattern - 1, pattern + 1}) {
        if (neighbour < 0 || neighbour > type.largest) continue;
        const double other = type.decode(static_cast<uint8_t>(neighbour | (code & 0x80)));
        EXPECT_LE(error, std::fabs(other - double(x))) << type.name << " " << x;
      }
    }
  }
}

}  // namespace
}  // namespace kvsweep::codec
