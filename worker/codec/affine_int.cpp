// Compiled with -ffp-contract=off: a fused multiply-add would change codes and values.
#include "worker/codec/affine_int.hpp"

#include <algorithm>
#include <cmath>

#include "worker/codec/bytes.hpp"
#include "worker/codec/half.hpp"

namespace kvsweep::codec {
namespace {

using kernels::CodeKind;
using kernels::ParamKind;

constexpr int kChunk = 64;  // elements worked on at once, on the stack; a multiple of 32

// Rounds |x| < 2^22 to the nearest integer, ties to even: floats in [2^23, 2^24) are spaced by 1.
// Vectorises on every x86-64, unlike nearbyint.
inline float round_even(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return (x + kShift) - kShift;
}

// code = rint((x - min) / scale) + first; x^ = code * scale + offset.
struct Params {
  uint16_t scale_bits = 0;
  uint16_t min_bits = 0;
  float scale = 0;
  float min = 0;
};

struct Limit {
  Fault fault = Fault::none;
  float extreme = 0;  // the element that is too large
};

template <int Bits>
constexpr int first_code(bool symmetric) {
  return symmetric ? 1 << (Bits - 1) : 0;
}

// fp16 step >= step; 0 for the step of an empty range alone.
inline uint16_t step_bits(float step, bool empty) {
  const uint16_t bits = float_to_half_up(step);
  // The quotient of a subnormal range may underflow.
  return !empty && bits == 0 ? kHalfTiny : bits;
}

template <int Bits>
Limit make_symmetric(float low, float high, Params* params) {
  constexpr float kMax = static_cast<float>((1 << (Bits - 1)) - 1);
  const float extreme = -low > high ? low : high;
  const float largest = std::fabs(extreme);
  if (!(largest / kMax <= kHalfMax)) return {Fault::scale_range, extreme};
  params->scale_bits = step_bits(largest / kMax, largest == 0);
  params->scale = half_to_float(params->scale_bits);
  params->min = 0;
  return {};
}

template <int Bits>
Limit make_params(bool symmetric, float low, float high, Params* params) {
  if (symmetric) return make_symmetric<Bits>(low, high, params);
  constexpr float kLevels = static_cast<float>((1 << Bits) - 1);
  if (std::fabs(low) > kHalfMax) return {Fault::offset_range, low};
  // Adding 0 turns -0 into +0: which zero is the smaller depends on the order of the elements.
  params->min_bits = float_to_half_down(low + 0.0f);
  params->min = half_to_float(params->min_bits);
  const float range = (high - params->min) + 0.0f;
  if (!(range / kLevels <= kHalfMax)) return {Fault::scale_range, high};
  params->scale_bits = step_bits(range / kLevels, range == 0);
  params->scale = half_to_float(params->scale_bits);
  return {};
}

inline void store(const Params& p, bool symmetric, int64_t group, uint8_t* params) {
  if (symmetric) return write_at(params + 2 * group, p.scale_bits);
  write_at(params + 4 * group, p.scale_bits);
  write_at(params + 4 * group + 2, p.min_bits);
}

// Scale and offset of decoding. The symmetric offset and the sum are exact: code * scale has at
// most 8 + 11 significant bits.
template <int Bits>
Params load(bool symmetric, int64_t group, const uint8_t* params) {
  Params p;
  p.scale = half_to_float(read_at<uint16_t>(params + (symmetric ? 2 : 4) * group));
  p.min = symmetric ? -static_cast<float>(first_code<Bits>(true)) * p.scale
                    : half_to_float(read_at<uint16_t>(params + 4 * group + 2));
  return p;
}

// Where the codes of element i begin, i a multiple of 8.
template <int Bits>
constexpr int64_t code_offset(int64_t i) {
  return Bits == 3 ? i / 32 * 12 + i % 32 / 4 : i * Bits / 8;
}

// Eight 3-bit codes: two bytes of low bits, one byte of high bits behind the 8 low bytes of the 32.
inline void pack_planes(const uint8_t* values, int count, int64_t begin, uint8_t* row) {
  unsigned low = 0;
  unsigned high = 0;
  for (int e = 0; e < count; ++e) {
    low |= (values[e] & 3u) << (2 * e);
    high |= (values[e] >> 2 & 1u) << e;
  }
  write_at(row + code_offset<3>(begin), static_cast<uint16_t>(low));
  row[begin / 32 * 12 + 8 + begin % 32 / 8] = static_cast<uint8_t>(high);
}

// Codes of the elements begin .. begin + count of a row; begin is a multiple of 8 / Bits (3 bits:
// of 8), and so is count unless the row ends there.
template <int Bits>
inline void pack(const uint8_t* values, int count, int64_t begin, uint8_t* row) {
  if constexpr (Bits == 3) {
    for (int i = 0; i < count; i += 8) {
      pack_planes(values + i, std::min(8, count - i), begin + i, row);
    }
  } else {
    constexpr int kPerByte = 8 / Bits;
    uint8_t* codes = row + begin / kPerByte;
    for (int i = 0; i < count / kPerByte; ++i) {
      unsigned byte = 0;
      for (int e = 0; e < kPerByte; ++e) byte |= unsigned{values[i * kPerByte + e]} << (e * Bits);
      codes[i] = static_cast<uint8_t>(byte);
    }
  }
}

// The padding of a row of 3-bit codes is zero: equal inputs give equal bytes.
template <int Bits>
inline void clear_padding(int head_dim, uint8_t* row) {
  if constexpr (Bits == 3) {
    for (int i = (head_dim + 7) / 8 * 8; i % 32 != 0; i += 8) pack_planes(nullptr, 0, i, row);
  }
}

template <int Bits>
inline float code_at(const uint8_t* codes, int64_t i) {
  if constexpr (Bits == 3) {
    const uint8_t* planes = codes + i / 32 * 12;
    const int64_t at = i % 32;
    const unsigned low = planes[at / 4] >> (at % 4 * 2) & 3u;
    return static_cast<float>(low | (planes[8 + at / 8] >> (at % 8) & 1u) << 2);
  } else {
    constexpr int kPerByte = 8 / Bits;
    constexpr unsigned kMask = (1u << Bits) - 1u;
    return static_cast<float>((codes[i / kPerByte] >> ((i % kPerByte) * Bits)) & kMask);
  }
}

int64_t first_non_finite(const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return -1;
}

template <int Bits>
void encode_group(const float* values, int count, const Params& params, int first, int64_t begin,
                  uint8_t* row) {
  const float divisor = params.scale == 0 ? 1.0f : params.scale;
  uint8_t chunk[kChunk];
  for (int at = 0; at < count; at += kChunk) {
    const int n = std::min(kChunk, count - at);
    for (int i = 0; i < n; ++i) {
      const float steps = (values[at + i] - params.min) / divisor;
      chunk[i] = static_cast<uint8_t>(static_cast<int>(round_even(steps)) + first);
    }
    pack<Bits>(chunk, n, begin + at, row);
  }
}

template <int Bits>
EncodeResult encode_row(const RowShape& shape, const float* values, uint8_t* codes,
                        uint8_t* params) {
  const bool symmetric = shape.variant.symmetric;
  const int64_t bad = first_non_finite(values, shape.head_dim);
  if (bad >= 0) return {Fault::non_finite, 0, bad, values[bad]};
  for (int begin = 0, g = 0; begin < shape.head_dim; begin += shape.group, ++g) {
    const int count = std::min(shape.group, shape.head_dim - begin);
    const auto [low, high] = std::minmax_element(values + begin, values + begin + count);
    Params p;
    const Limit limit = make_params<Bits>(symmetric, *low, *high, &p);
    if (limit.fault != Fault::none) {
      const float* at = std::find(values + begin, values + begin + count, limit.extreme);
      return {limit.fault, 0, at - values, *at};
    }
    store(p, symmetric, g, params);
    encode_group<Bits>(values + begin, count, p, first_code<Bits>(symmetric), begin, codes);
  }
  clear_padding<Bits>(shape.head_dim, codes);
  return {};
}

template <int Bits>
void decode_row(const RowShape& shape, const uint8_t* codes, const uint8_t* params, float* values) {
  for (int begin = 0, g = 0; begin < shape.head_dim; begin += shape.group, ++g) {
    const int end = std::min(begin + shape.group, shape.head_dim);
    const Params p = load<Bits>(shape.variant.symmetric, g, params);
    for (int i = begin; i < end; ++i) values[i] = code_at<Bits>(codes, i) * p.scale + p.min;
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
    const Limit limit = make_params<Bits>(shape.variant.symmetric, low[c], high[c], &params[c]);
    if (limit.fault == Fault::none) continue;
    int64_t token = 0;
    while (values[token * shape.head_dim + begin + c] != limit.extreme) ++token;
    return {limit.fault, token, begin + c, limit.extreme};
  }
  return {};
}

template <int Bits>
EncodeResult encode_block(const BlockShape& shape, const float* values, uint8_t* codes,
                          uint8_t* params) {
  const bool symmetric = shape.variant.symmetric;
  const int64_t bad = first_non_finite(values, int64_t{shape.tokens} * shape.head_dim);
  if (bad >= 0) {
    return {Fault::non_finite, bad / shape.head_dim, bad % shape.head_dim, values[bad]};
  }
  const int first = first_code<Bits>(symmetric);
  for (int begin = 0; begin < shape.head_dim; begin += kChunk) {
    const int count = std::min(kChunk, shape.head_dim - begin);
    Params p[kChunk];
    const EncodeResult result = block_params<Bits>(shape, values, begin, count, p);
    if (!result.ok()) return result;
    float min[kChunk];
    float divisor[kChunk];
    for (int c = 0; c < count; ++c) {
      store(p[c], symmetric, begin + c, params);
      min[c] = p[c].min;
      divisor[c] = p[c].scale == 0 ? 1.0f : p[c].scale;
    }
    uint8_t chunk[kChunk];
    for (int t = 0; t < shape.tokens; ++t) {
      const float* row = values + int64_t{t} * shape.head_dim + begin;
      for (int c = 0; c < count; ++c) {
        const float steps = round_even((row[c] - min[c]) / divisor[c]);
        chunk[c] = static_cast<uint8_t>(static_cast<int>(steps) + first);
      }
      pack<Bits>(chunk, count, begin, codes + t * shape.row_bytes);
    }
  }
  for (int t = 0; t < shape.tokens; ++t) {
    clear_padding<Bits>(shape.head_dim, codes + t * shape.row_bytes);
  }
  return {};
}

template <int Bits>
void decode_block(const BlockShape& shape, const uint8_t* codes, const uint8_t* params,
                  float* values) {
  for (int c = 0; c < shape.head_dim; ++c) {
    const Params p = load<Bits>(shape.variant.symmetric, c, params);
    for (int64_t t = 0; t < shape.tokens; ++t) {
      values[t * shape.head_dim + c] =
          code_at<Bits>(codes + t * shape.row_bytes, c) * p.scale + p.min;
    }
  }
}

template <int Bits>
Codec affine_int(std::string_view name, CodeKind code) {
  Codec codec;
  codec.name = name;
  codec.bits = Bits;
  codec.code = code;
  codec.params = ParamKind::half_scale_min;
  codec.supports_symmetric = true;
  codec.encode_row = encode_row<Bits>;
  codec.decode_row = decode_row<Bits>;
  codec.encode_block = encode_block<Bits>;
  codec.decode_block = decode_block<Bits>;
  return codec;
}

}  // namespace

Codec affine_int8() {
  return affine_int<8>("int8", CodeKind::uint8);
}
Codec affine_int4() {
  return affine_int<4>("int4", CodeKind::uint4);
}
Codec affine_int3() {
  return affine_int<3>("int3", CodeKind::uint3);
}
Codec affine_int2() {
  return affine_int<2>("int2", CodeKind::uint2);
}

}  // namespace kvsweep::codec
