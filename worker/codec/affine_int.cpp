// Compiled with -ffp-contract=off: a fused multiply-add would change codes and values.
#include "worker/codec/affine_int.hpp"

#include <algorithm>
#include <cmath>

#include "worker/codec/bytes.hpp"
#include "worker/codec/elements.hpp"
#include "worker/codec/half.hpp"

namespace kvsweep::codec {
namespace {

using kernels::CodeKind;
using kernels::ParamKind;

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

// Eight 3-bit codes, fewer at the end of a row: three bytes.
inline void pack_three_bits(const uint8_t* values, int count, uint8_t* codes) {
  unsigned word = 0;
  for (int e = 0; e < count; ++e) word |= unsigned{values[e]} << (3 * e);
  for (int b = 0; b < 3; ++b) codes[b] = static_cast<uint8_t>(word >> (8 * b));
}

// Codes of the elements begin .. begin + count of a row; begin is a multiple of 8 / Bits (3 bits:
// of 8), and so is count unless the row ends there.
template <int Bits>
inline void pack(const uint8_t* values, int count, int64_t begin, uint8_t* row) {
  uint8_t* codes = row + begin * Bits / 8;
  if constexpr (Bits == 3) {
    for (int i = 0; i < count; i += 8) {
      pack_three_bits(values + i, std::min(8, count - i), codes + i / 8 * 3);
    }
  } else {
    constexpr int kPerByte = 8 / Bits;
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
    const int64_t used = (head_dim + 7) / 8 * 3;
    std::fill(row + used, row + kernels::row_bytes(CodeKind::uint3, head_dim), uint8_t{0});
  }
}

template <int Bits>
inline float code_at(const uint8_t* codes, int64_t i) {
  constexpr unsigned kMask = (1u << Bits) - 1u;
  const int64_t byte = i * Bits / 8;
  const int shift = static_cast<int>(i * Bits % 8);
  unsigned bits = codes[byte] >> shift;
  if (Bits == 3 && shift > 5) bits |= unsigned{codes[byte + 1]} << (8 - shift);
  return static_cast<float>(bits & kMask);
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
    const Extremes e = extremes(values + begin, count);
    Params p;
    const Limit limit = make_params<Bits>(symmetric, e.low, e.high, &p);
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
