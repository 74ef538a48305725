// Codes to fp32 values, branch-free so that the loops over them vectorise, and the parameters of a
// run of groups. Files that include this are compiled with -ffp-contract=off: every value is
// rounded as the codec rounds it.
#pragma once

#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_tables.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {

inline float as_float(int32_t bits) {
  return __builtin_bit_cast(float, bits);
}
inline int32_t as_bits(float value) {
  return __builtin_bit_cast(int32_t, value);
}

// A small floating type. Normal numbers get their exponent rebiased. A subnormal m is built as
// 2^(1-bias) * (1 + m / 2^Mantissa) minus 2^(1-bias), which is exact.
template <int Exponent, int Mantissa, int Bias>
inline int32_t small_magnitude(int32_t magnitude) {
  constexpr int kShift = 23 - Mantissa;
  constexpr int32_t kSmallestNormal = (128 - Bias) << 23;
  const int32_t shifted = magnitude << kShift;
  const float tiny = as_float(shifted + kSmallestNormal) - as_float(kSmallestNormal);
  return magnitude < (1 << Mantissa) ? as_bits(tiny) : shifted + ((127 - Bias) << 23);
}

inline float e4m3(int code) {
  const int32_t magnitude = code & 0x7f;
  int32_t bits = small_magnitude<4, 3, 7>(magnitude);
  bits = magnitude == 0x7f ? 0x7fc00000 : bits;
  return as_float(bits | (code & 0x80) << 24);
}

inline float e5m2(int code) {
  const int32_t magnitude = code & 0x7f;
  int32_t bits = small_magnitude<5, 2, 15>(magnitude);
  bits = magnitude >= 0x7c ? 0x7f800000 | (magnitude & 3) << 21 : bits;
  return as_float(bits | (code & 0x80) << 24);
}

inline float e2m1(int code) {
  return as_float(small_magnitude<2, 1, 1>(code & 7) | (code & 8) << 28);
}

// 2^(byte - 127): the smallest is a subnormal float, 255 is a NaN.
inline float e8m0(int byte) {
  const int32_t bits = byte == 0 ? 0x00400000 : byte << 23;
  return as_float(byte == 255 ? 0x7fc00000 : bits);
}

// How a code and its parameters become a value.
template <int BitsPerCode>
struct Integers {
  static constexpr int kBits = BitsPerCode;
  static float value(int code, float scale, float min) {
    return static_cast<float>(code) * scale + min;
  }
};
struct E4m3Codes {
  static constexpr int kBits = 8;
  static float value(int code, float scale, float) { return e4m3(code) * scale; }
};
struct E5m2Codes {
  static constexpr int kBits = 8;
  static float value(int code, float scale, float) { return e5m2(code) * scale; }
};
struct E2m1Codes {
  static constexpr int kBits = 4;
  static float value(int code, float scale, float) { return e2m1(code) * scale; }
};

// Calls use(Codes{}) with the type for the tile's codes.
template <typename Use>
inline void with_codes(CodeKind kind, const Use& use) {
  switch (kind) {
    case CodeKind::uint8:
      return use(Integers<8>{});
    case CodeKind::uint4:
      return use(Integers<4>{});
    case CodeKind::uint3:
      return use(Integers<3>{});
    case CodeKind::uint2:
      return use(Integers<2>{});
    case CodeKind::e4m3:
      return use(E4m3Codes{});
    case CodeKind::e5m2:
      return use(E5m2Codes{});
    case CodeKind::e2m1:
      return use(E2m1Codes{});
    case CodeKind::word11:
      break;
  }
}

// Scale and offset of one run of tokens or channels, widened and taken apart.
struct Parameters {
  alignas(64) float scale[kMaxTileTokens];
  alignas(64) float min[kMaxTileTokens] = {};  // stays 0 where there is none

  Parameters(const PackedTile& tile, int bits)
      : format_(tile.format),
        params_(tile.params),
        bytes_(param_bytes(tile.format.params)),
        middle_(static_cast<float>(1 << (bits - 1))) {}

  // Of the groups first, first + stride, first + 2 * stride ...; count <= kMaxTileTokens.
  void load(int64_t first, int64_t stride, int count) {
    const uint8_t* from = params_ + first * bytes_;
    const int64_t step = stride * bytes_;
    switch (format_.params) {
      case ParamKind::half_scale_min:
        return load_pairs(from, step, count);
      case ParamKind::half_scale:
        return load_halves(from, step, count);
      case ParamKind::e4m3_scale:
        for (int i = 0; i < count; ++i) scale[i] = e4m3(from[i * step]) * format_.constant;
        return;
      case ParamKind::e8m0_scale:
        for (int i = 0; i < count; ++i) scale[i] = e8m0(from[i * step]);
        return;
      default:
        for (int i = 0; i < count; ++i) scale[i] = format_.constant;
        return;
    }
  }

 private:
  void load_pairs(const uint8_t* from, int64_t step, int count) {
    alignas(64) uint16_t packed[2 * kMaxTileTokens];
    alignas(64) float wide[2 * kMaxTileTokens];
    for (int i = 0; i < count; ++i) __builtin_memcpy(packed + 2 * i, from + i * step, 4);
    widen_halves(packed, 2 * count, wide);
    for (int i = 0; i < count; ++i) {
      scale[i] = wide[2 * i];
      min[i] = wide[2 * i + 1];
    }
  }

  // Symmetric integers: (code - middle) * scale is exact, and so is code * scale - middle * scale.
  void load_halves(const uint8_t* from, int64_t step, int count) {
    alignas(64) uint16_t packed[kMaxTileTokens];
    for (int i = 0; i < count; ++i) __builtin_memcpy(packed + i, from + i * step, 2);
    widen_halves(packed, count, scale);
    for (int i = 0; i < count; ++i) min[i] = -middle_ * scale[i];
  }

  PackedFormat format_;
  const uint8_t* params_;
  int64_t bytes_;
  float middle_;
};

// A parameter that is the same for a whole run.
struct Same {
  float same;
  float operator[](int) const { return same; }
};

}  // namespace kvsweep::kernels::KVSWEEP_ISA
