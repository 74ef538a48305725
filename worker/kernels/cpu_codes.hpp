// What the codes of a page mean, without branches so that the loops over them vectorise, and the
// parameters of a run of groups. Files that include this are compiled with -ffp-contract=off: every
// value is rounded as the codec rounds it.
#pragma once

#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_tables.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {

inline float as_float(int32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// What the code of a small float means: the pattern of a half, whose value times kFactor is the
// code's. That product is exact, so (half * kFactor) * scale is rounded once, as in the codec.
//
// The small floats are halves with fewer bits: sign, exponent and mantissa move to their places,
// the factor makes up for the difference of the biases, and subnormal numbers stay subnormal.
struct E4m3Codes {
  static constexpr int kBits = 8;
  static constexpr float kFactor = 256;  // 2^(15 - 7)
  static uint16_t half(int code) {
    const int magnitude = code & 0x7f;
    const int nan = magnitude == 0x7f ? 0x7e00 : 0;
    return static_cast<uint16_t>((code & 0x80) << 8 | magnitude << 7 | nan);
  }
};
struct E5m2Codes {
  static constexpr int kBits = 8;
  static constexpr float kFactor = 1;
  static uint16_t half(int code) { return static_cast<uint16_t>(code << 8); }
};
struct E2m1Codes {
  static constexpr int kBits = 4;
  static constexpr float kFactor = 16384;  // 2^(15 - 1)
  static uint16_t half(int code) {
    return static_cast<uint16_t>((code & 8) << 12 | (code & 7) << 9);
  }
};
template <int BitsPerCode>
struct Integers {
  static constexpr int kBits = BitsPerCode;
};

template <typename Codes>
constexpr bool kFloats = true;
template <int Bits>
constexpr bool kFloats<Integers<Bits>> = false;

// 2^(byte - 127): the smallest is a subnormal float, 255 is a NaN.
inline float e8m0(int byte) {
  const int32_t bits = byte == 0 ? 0x00400000 : byte << 23;
  return as_float(byte == 255 ? 0x7fc00000 : bits);
}

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
  alignas(64) float min[kMaxTileTokens];  // floats: 0, and nobody looks

  Parameters(const PackedTile& tile, int bits)
      : format_(tile.format),
        params_(tile.params),
        bytes_(param_bytes(tile.format.params)),
        middle_(static_cast<float>(1 << (bits - 1))) {
    const CodeKind code = format_.code;
    if (code != CodeKind::e4m3 && code != CodeKind::e5m2 && code != CodeKind::e2m1) return;
    for (float& m : min) m = 0;
  }

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
        return load_small(from, step, count);
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
    if (step == 4) {
      __builtin_memcpy(packed, from, static_cast<size_t>(count) * 4);
    } else {
      for (int i = 0; i < count; ++i) __builtin_memcpy(packed + 2 * i, from + i * step, 4);
    }
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

  void load_small(const uint8_t* from, int64_t step, int count) {
    alignas(64) uint16_t halves[kMaxTileTokens];
    for (int i = 0; i < count; ++i) halves[i] = E4m3Codes::half(from[i * step]);
    widen_halves(halves, count, scale);
    for (int i = 0; i < count; ++i) scale[i] = (scale[i] * E4m3Codes::kFactor) * format_.constant;
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
