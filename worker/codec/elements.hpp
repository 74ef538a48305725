// What the codecs do with elements and steps alike.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "worker/codec/half.hpp"

namespace kvsweep::codec {

constexpr int kChunk = 64;  // elements worked on at once, on the stack; a multiple of 8

// Rounds |x| < 2^22 to the nearest integer, ties to even: floats in [2^23, 2^24) are spaced by 1.
// Vectorises on every x86-64, unlike nearbyint.
inline float round_even(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return (x + kShift) - kShift;
}

// The fp16 that is stored for a step: not below it, and 0 for the step of an empty range alone (the
// quotient of a subnormal range may underflow).
inline uint16_t step_bits(float step, bool empty) {
  const uint16_t bits = float_to_half_up(step);
  return !empty && bits == 0 ? kHalfTiny : bits;
}

inline int64_t first_non_finite(const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return -1;
}

// Index of the element that is largest in magnitude, the first of several.
inline int64_t largest_magnitude(const float* values, int64_t count) {
  int64_t at = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (std::fabs(values[i]) > std::fabs(values[at])) at = i;
  }
  return at;
}

}  // namespace kvsweep::codec
