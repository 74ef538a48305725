// Exact conversions between float and the 16-bit types, on bit patterns: no intrinsics, the same
// result on every machine. Rounding is to nearest, ties to even, unless the name says a direction.
// Sources: IEEE 754-2019 binary16; bfloat16 = the upper half of binary32.
#pragma once

#include <bit>
#include <cstdint>

namespace kvsweep::codec {

constexpr float kHalfMax = 65504.0f;
constexpr uint16_t kHalfTiny = 0x0001;  // 2^-24, the smallest positive value

// Worked example: 0x3c00 -> 1, 0x0001 -> 2^-24, 0x7bff -> 65504. Infinity and NaN keep their kind.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x0400u) {  // subnormal: magnitude * 2^-24, exact
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

// From 65520 on the result is infinity.
inline uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN stays NaN, quiet
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the spacing is 2^-24, which is the spacing of floats in [0.5, 1): the addition
    // rounds for us.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// The largest half <= value. Below -65504 that is -infinity: callers check the range.
inline uint16_t float_to_half_down(float value) {
  const uint16_t half = float_to_half(value);
  if (!(half_to_float(half) > value)) return half;
  if ((half & 0x7fffu) == 0) return 0x8000u | kHalfTiny;
  return static_cast<uint16_t>(half & 0x8000u ? half + 1 : half - 1);
}

// The smallest half >= value. Above 65504 that is infinity.
inline uint16_t float_to_half_up(float value) {
  return static_cast<uint16_t>(float_to_half_down(-value) ^ 0x8000u);
}

inline float bf16_to_float(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace kvsweep::codec
