// Conversions between float and the 8-bit and 4-bit floating types, on bit patterns: no intrinsics,
// the same result on every machine. Encoding rounds to nearest, ties to even, and saturates: what
// is beyond the largest finite value becomes that value, infinity too; NaN has no fp4 pattern, so
// callers refuse it before.
//
//   type   sign exponent mantissa bias  largest  smallest  special patterns
//   E4M3     1      4        3      7      448      2^-9   S.1111.111 NaN, no infinity
//   E5M2     1      5        2     15    57344     2^-16   S.11111.00 infinity, other mantissas NaN
//   E2M1     1      2        1      1        6       0.5   none
//   E8M0     0      8        0    127    2^127    2^-127   1111.1111 NaN; a scale, no zero
// Sources: OCP 8-bit Floating Point Specification (OFP8) 1.0; OCP Microscaling Formats (MX) 1.0.
// Worked example, E2M1: 2.5 lies between 2 (code 4) and 3 (code 5) and becomes 2, the even code.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace kvsweep::codec {

template <int Exponent, int Mantissa, int Bias, int Largest>
struct SmallFloat {
  static constexpr int kSignBit = Exponent + Mantissa;
  static constexpr uint32_t kMagnitudes = (1u << kSignBit) - 1u;
  static constexpr int kShift = 23 - Mantissa;
  static constexpr uint32_t kLargest = Largest;  // pattern of the largest finite value
  static constexpr uint32_t kRebias = static_cast<uint32_t>(127 - Bias) << 23;
  // Below the smallest normal number the spacing is constant: adding kGrid, whose own spacing is
  // just that, rounds for us.
  static constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(128 - Bias) << 23;
  static constexpr uint32_t kGridBits = static_cast<uint32_t>(127 + 24 - Bias - Mantissa) << 23;

  static float magnitude(uint32_t pattern) {  // of a finite value
    if ((pattern >> Mantissa) != 0) return std::bit_cast<float>((pattern << kShift) + kRebias);
    constexpr uint32_t kSpacing = static_cast<uint32_t>(128 - Bias - Mantissa) << 23;
    return static_cast<float>(pattern) * std::bit_cast<float>(kSpacing);
  }

  static float signed_as(uint32_t code, float magnitude) {
    const uint32_t sign = (code >> kSignBit & 1u) << 31;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }

  static uint8_t encode(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t absolute = bits & 0x7fffffffu;
    const float grid = std::bit_cast<float>(kGridBits);
    const uint32_t tiny =
        std::bit_cast<uint32_t>(std::bit_cast<float>(absolute) + grid) - kGridBits;
    const uint32_t half = (1u << (kShift - 1)) - 1u;
    const uint32_t rounded = (absolute + half + (absolute >> kShift & 1u) - kRebias) >> kShift;
    uint32_t pattern = absolute < kSmallestNormal ? tiny : rounded;
    pattern = absolute >= std::bit_cast<uint32_t>(magnitude(kLargest)) ? kLargest : pattern;
    return static_cast<uint8_t>(pattern | (bits >> 31) << kSignBit);
  }
};

using E4m3 = SmallFloat<4, 3, 7, 0x7e>;
using E5m2 = SmallFloat<5, 2, 15, 0x7b>;
using E2m1 = SmallFloat<2, 1, 1, 0x7>;

constexpr float kE4m3Max = 448.0f;
constexpr float kE5m2Max = 57344.0f;
constexpr float kE2m1Max = 6.0f;

inline float e4m3_to_float(uint8_t code) {
  const uint32_t pattern = code & 0x7fu;
  if (pattern == 0x7f) return E4m3::signed_as(code, std::numeric_limits<float>::quiet_NaN());
  return E4m3::signed_as(code, E4m3::magnitude(pattern));
}
inline uint8_t float_to_e4m3(float value) {
  return value == value ? E4m3::encode(value) : uint8_t{0x7f};
}

inline float e5m2_to_float(uint8_t code) {
  const uint32_t pattern = code & 0x7fu;
  if (pattern > 0x7c) return E5m2::signed_as(code, std::numeric_limits<float>::quiet_NaN());
  if (pattern == 0x7c) return E5m2::signed_as(code, std::numeric_limits<float>::infinity());
  return E5m2::signed_as(code, E5m2::magnitude(pattern));
}
inline uint8_t float_to_e5m2(float value) {
  return value == value ? E5m2::encode(value) : uint8_t{0x7f};
}

inline float e2m1_to_float(uint8_t code) {  // the lower four bits
  return E2m1::signed_as(code, E2m1::magnitude(code & 7u));
}
inline uint8_t float_to_e2m1(float value) {
  return E2m1::encode(value);
}

inline float e8m0_to_float(uint8_t code) {
  if (code == 0xff) return std::numeric_limits<float>::quiet_NaN();
  // 2^-127 is a subnormal float.
  return std::bit_cast<float>(code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23);
}

}  // namespace kvsweep::codec
