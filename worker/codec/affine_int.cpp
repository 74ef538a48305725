// Compiled with -ffp-contract=off: a fused multiply-add would change codes and values.
#include "worker/codec/affine_int.hpp"

#include <algorithm>
#include <cmath>

#include "worker/codec/half.hpp"

namespace kvsweep::codec {
namespace {

constexpr int kChunk = 64;  // elements worked on at once, on the stack; a multiple of 8

// Rounds 0 <= x < 2^22 to the nearest integer, ties to even: floats in [2^23, 2^24) are spaced by
// 1. Vectorises on every x86-64, unlike nearbyint.
inline float round_even(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return (x + kShift) - kShift;
}

struct Params {
  uint16_t scale_bits = 0;
  uint16_t min_bits = 0;
  float scale = 0;
  float min = 0;
};

template <int Bits>
Fault make_params(float low, float high, Params* params) {
  constexpr float kLevels = static_cast<float>((1 << Bits) - 1);
  if (std::fabs(low) > kHalfMax) return Fault::offset_range;
  // Adding 0 turns -0 into +0: which zero is the smaller depends on the order of the elements.
  params->min_bits = float_to_half_down(low + 0.0f);
  params->min = half_to_float(params->min_bits);
  const float range = (high - params->min) + 0.0f;
  if (!(range / kLevels <= kHalfMax)) return Fault::scale_range;
  params->scale_bits = float_to_half_up(range / kLevels);
  // The quotient of a subnormal range may underflow; a step of 0 is kept for range 0 alone.
  if (range > 0 && params->scale_bits == 0) params->scale_bits = kHalfTiny;
  params->scale = half_to_float(params->scale_bits);
  return Fault::none;
}

// values < 2^Bits -> count * Bits / 8 bytes; count is a multiple of 8 / Bits.
template <int Bits>
inline void pack(const uint8_t* values, int count, uint8_t* codes) {
  constexpr int kPerByte = 8 / Bits;
  for (int i = 0; i < count / kPerByte; ++i) {
    unsigned byte = 0;
    for (int e = 0; e < kPerByte; ++e) byte |= unsigned{values[i * kPerByte + e]} << (e * Bits);
    codes[i] = static_cast<uint8_t>(byte);
  }
}

template <int Bits>
inline float code_at(const uint8_t* codes, int64_t i) {
  constexpr int kPerByte = 8 / Bits;
  constexpr unsigned kMask = (1u << Bits) - 1u;
  return static_cast<float>((codes[i / kPerByte] >> ((i % kPerByte) * Bits)) & kMask);
}

int64_t first_non_finite(const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return -1;
}

template <int Bits>
void encode_group(const float* values, int count, const Params& params, uint8_t* codes) {
  const float divisor = params.scale == 0 ? 1.0f : params.scale;
  uint8_t chunk[kChunk];
  for (int begin = 0; begin < count; begin += kChunk) {
    const int n = std::min(kChunk, count - begin);
    for (int i = 0; i < n; ++i) {
      const float steps = (values[begin + i] - params.min) / divisor;
      chunk[i] = static_cast<uint8_t>(static_cast<int>(round_even(steps)));
    }
    pack<Bits>(chunk, n, codes + begin * Bits / 8);
  }
}

template <int Bits>
EncodeResult encode_row(const RowShape& shape, const float* values, uint8_t* codes,
                        uint16_t* params) {
  const int64_t bad = first_non_finite(values, shape.head_dim);
  if (bad >= 0) return {Fault::non_finite, 0, bad, values[bad]};
  for (int begin = 0, g = 0; begin < shape.head_dim; begin += shape.group, ++g) {
    const int count = std::min(shape.group, shape.head_dim - begin);
    const auto [low, high] = std::minmax_element(values + begin, values + begin + count);
    Params p;
    const Fault fault = make_params<Bits>(*low, *high, &p);
    if (fault != Fault::none) {
      const float* at = fault == Fault::offset_range ? low : high;
      return {fault, 0, at - values, *at};
    }
    params[2 * g] = p.scale_bits;
    params[2 * g + 1] = p.min_bits;
    encode_group<Bits>(values + begin, count, p, codes + begin * Bits / 8);
  }
  return {};
}

template <int Bits>
void decode_row(const RowShape& shape, const uint8_t* codes, const uint16_t* params,
                float* values) {
  for (int begin = 0, g = 0; begin < shape.head_dim; begin += shape.group, ++g) {
    const int end = std::min(begin + shape.group, shape.head_dim);
    const float scale = half_to_float(params[2 * g]);
    const float min = half_to_float(params[2 * g + 1]);
    for (int i = begin; i < end; ++i) values[i] = code_at<Bits>(codes, i) * scale + min;
  }
}

// Range and parameters of channels begin .. begin + count of a block.
template <int Bits>
EncodeResult block_params(const BlockShape& shape, const float* values, int begin, int count,
                          Params* params) {
  float low[kChunk];
  float high[kChunk];
  std::copy_n(values + begin, count, low);
  std::copy_n(values + begin, count, high);
  for (int t = 0; t < shape.tokens; ++t) {
    const float* row = values + int64_t{t} * shape.head_dim + begin;
    for (int c = 0; c < count; ++c) {
      low[c] = row[c] < low[c] ? row[c] : low[c];
      high[c] = row[c] > high[c] ? row[c] : high[c];
    }
  }
  for (int c = 0; c < count; ++c) {
    const Fault fault = make_params<Bits>(low[c], high[c], &params[c]);
    if (fault == Fault::none) continue;
    const float extreme = fault == Fault::offset_range ? low[c] : high[c];
    int64_t token = 0;
    while (values[token * shape.head_dim + begin + c] != extreme) ++token;
    return {fault, token, begin + c, extreme};
  }
  return {};
}

template <int Bits>
EncodeResult encode_block(const BlockShape& shape, const float* values, uint8_t* codes,
                          uint16_t* params) {
  const int64_t bad = first_non_finite(values, int64_t{shape.tokens} * shape.head_dim);
  if (bad >= 0) {
    return {Fault::non_finite, bad / shape.head_dim, bad % shape.head_dim, values[bad]};
  }
  for (int begin = 0; begin < shape.head_dim; begin += kChunk) {
    const int count = std::min(kChunk, shape.head_dim - begin);
    Params p[kChunk];
    const EncodeResult result = block_params<Bits>(shape, values, begin, count, p);
    if (!result.ok()) return result;
    float min[kChunk];
    float divisor[kChunk];
    for (int c = 0; c < count; ++c) {
      params[2 * (begin + c)] = p[c].scale_bits;
      params[2 * (begin + c) + 1] = p[c].min_bits;
      min[c] = p[c].min;
      divisor[c] = p[c].scale == 0 ? 1.0f : p[c].scale;
    }
    uint8_t chunk[kChunk];
    for (int t = 0; t < shape.tokens; ++t) {
      const float* row = values + int64_t{t} * shape.head_dim + begin;
      for (int c = 0; c < count; ++c) {
        chunk[c] =
            static_cast<uint8_t>(static_cast<int>(round_even((row[c] - min[c]) / divisor[c])));
      }
      pack<Bits>(chunk, count, codes + t * shape.row_bytes + begin * Bits / 8);
    }
  }
  return {};
}

template <int Bits>
void decode_block(const BlockShape& shape, const uint8_t* codes, const uint16_t* params,
                  float* values) {
  for (int c = 0; c < shape.head_dim; ++c) {
    const float scale = half_to_float(params[2 * c]);
    const float min = half_to_float(params[2 * c + 1]);
    for (int64_t t = 0; t < shape.tokens; ++t) {
      values[t * shape.head_dim + c] = code_at<Bits>(codes + t * shape.row_bytes, c) * scale + min;
    }
  }
}

template <int Bits>
Codec affine_int(std::string_view name) {
  return {name, Bits, encode_row<Bits>, decode_row<Bits>, encode_block<Bits>, decode_block<Bits>};
}

}  // namespace

Codec affine_int8() {
  return affine_int<8>("int8");
}
Codec affine_int4() {
  return affine_int<4>("int4");
}
Codec affine_int2() {
  return affine_int<2>("int2");
}

}  // namespace kvsweep::codec
