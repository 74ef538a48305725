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

// max |x|, as a bit pattern: those of magnitudes are ordered as the numbers are, NaN above
// infinity. A loop over integers, so it vectorises.
inline uint32_t magnitude_bits(const float* values, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

// max |x| of finite values.
inline float max_magnitude(const float* values, int64_t count) {
  return std::bit_cast<float>(magnitude_bits(values, count));
}

// -1: all are finite.
inline int64_t first_non_finite(const float* values, int64_t count) {
  if (magnitude_bits(values, count) < 0x7f800000u) return -1;
  int64_t i = 0;
  while (std::isfinite(values[i])) ++i;
  return i;
}

// Least and largest of finite values, count >= 1. Lane by lane: that vectorises, and which of two
// zeros comes out depends on their order.
struct Extremes {
  float low;
  float high;
};
inline Extremes extremes(const float* values, int64_t count) {
  constexpr int kLanes = 16;
  float low[kLanes];
  float high[kLanes];
  for (int l = 0; l < kLanes; ++l) low[l] = high[l] = values[l < count ? l : 0];
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float v = values[i + l];
      low[l] = v < low[l] ? v : low[l];
      high[l] = v > high[l] ? v : high[l];
    }
  }
  for (; i < count; ++i) {
    low[0] = values[i] < low[0] ? values[i] : low[0];
    high[0] = values[i] > high[0] ? values[i] : high[0];
  }
  for (int l = 1; l < kLanes; ++l) {
    low[0] = low[l] < low[0] ? low[l] : low[0];
    high[0] = high[l] > high[0] ? high[l] : high[0];
  }
  return {low[0], high[0]};
}

}  // namespace kvsweep::codec
