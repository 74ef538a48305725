#include "worker/codec/kvmix.hpp"

#include <algorithm>
#include <cmath>

#include "worker/codec/bytes.hpp"
#include "worker/codec/elements.hpp"
#include "worker/codec/half.hpp"

namespace kvsweep::codec {
namespace {

constexpr int kTokens = 11;
constexpr float kLevels = 7;
constexpr float kLastLevels = 3;

constexpr bool is_infinite(uint16_t half) {
  return (half & 0x7fffu) == 0x7c00u;
}

// One channel: values [11] at a distance of head_dim.
struct Column {
  const float* values;
  int64_t stride;
  float operator[](int t) const { return values[t * stride]; }
};

uint32_t encode_word(const Column& x, float min, float scale) {
  uint32_t word = 0;
  for (int t = 0; t < kTokens; ++t) {
    const float steps = scale == 0 ? 0.0f : std::round((x[t] - min) / scale);
    const float most = t == kTokens - 1 ? kLastLevels : kLevels;
    word |= static_cast<uint32_t>(std::clamp(steps, 0.0f, most)) << (3 * t);
  }
  return word;
}

EncodeResult encode_block(const BlockShape& shape, const float* values, uint8_t* codes,
                          uint8_t* params) {
  const int64_t bad = first_non_finite(values, int64_t{kTokens} * shape.head_dim);
  if (bad >= 0) {
    return {Fault::non_finite, bad / shape.head_dim, bad % shape.head_dim, values[bad]};
  }
  for (int c = 0; c < shape.head_dim; ++c) {
    const Column x{values + c, shape.head_dim};
    int low = 0;
    int high = 0;
    for (int t = 1; t < kTokens; ++t) {
      if (x[t] < x[low]) low = t;
      if (x[t] > x[high]) high = t;
    }
    const float min = x[low] + 0.0f;  // -0 becomes +0, whatever the order
    const float scale = (x[high] - min) / kLevels;
    const uint16_t stored[2] = {float_to_half(scale), float_to_half(min)};
    if (is_infinite(stored[1])) return {Fault::offset_range, low, c, x[low]};
    if (!(scale <= kHalfMax) || is_infinite(stored[0])) {
      return {Fault::scale_range, high, c, x[high]};
    }
    write_at(codes + int64_t{4} * c, encode_word(x, min, scale));
    write_at(params + int64_t{4} * c, stored[0]);
    write_at(params + int64_t{4} * c + 2, stored[1]);
  }
  return {};
}

void decode_block(const BlockShape& shape, const uint8_t* codes, const uint8_t* params,
                  float* values) {
  for (int c = 0; c < shape.head_dim; ++c) {
    const auto word = read_at<uint32_t>(codes + int64_t{4} * c);
    const float scale = half_to_float(read_at<uint16_t>(params + int64_t{4} * c));
    const float min = half_to_float(read_at<uint16_t>(params + int64_t{4} * c + 2));
    for (int t = 0; t < kTokens; ++t) {
      values[int64_t{t} * shape.head_dim + c] =
          static_cast<float>(word >> (3 * t) & 7u) * scale + min;
    }
  }
}

}  // namespace

Codec kvmix_int3_11pack() {
  Codec codec;
  codec.name = "int3-11pack";
  codec.bits = 3;
  codec.code = kernels::CodeKind::word11;
  codec.params = kernels::ParamKind::half_scale_min;
  codec.fixed_group = kTokens;
  codec.encode_block = encode_block;
  codec.decode_block = decode_block;
  return codec;
}

}  // namespace kvsweep::codec
