#include "worker/codec/fp8.hpp"

#include <algorithm>
#include <cmath>

#include "worker/codec/bytes.hpp"
#include "worker/codec/elements.hpp"
#include "worker/codec/half.hpp"
#include "worker/codec/small_float.hpp"

namespace kvsweep::codec {
namespace {

struct E4m3Type {
  static constexpr float kMax = kE4m3Max;
  static uint8_t encode(float value) { return E4m3::encode(value); }
  static float decode(uint8_t code) { return e4m3_to_float(code); }
};

struct E5m2Type {
  static constexpr float kMax = kE5m2Max;
  static uint8_t encode(float value) { return E5m2::encode(value); }
  static float decode(uint8_t code) { return e5m2_to_float(code); }
};

struct Group {
  int begin = 0;
  int end = 0;
  int index = 0;
};

// The scale of one group, stored unless calibrated. It must not make the largest code infinite.
template <typename Type>
EncodeResult make_scale(const RowShape& shape, const float* values, const Group& group,
                        uint8_t* params, float* scale) {
  if (shape.variant.calibrated) {
    *scale = shape.variant.constant;
    if (*scale > 0 && std::isfinite(*scale * Type::kMax)) return {};
    return {Fault::scale_missing, 0, group.begin, *scale};
  }
  const float largest = max_magnitude(values + group.begin, group.end - group.begin);
  const float step = largest / Type::kMax;
  if (!(step <= kHalfMax)) {
    int64_t at = group.begin;
    while (std::fabs(values[at]) != largest) ++at;
    return {Fault::scale_range, 0, at, values[at]};
  }
  const uint16_t bits = step_bits(step, largest == 0);
  write_at(params + 2 * group.index, bits);
  *scale = half_to_float(bits);
  return {};
}

template <typename Type>
EncodeResult encode_row(const RowShape& shape, const float* values, uint8_t* codes,
                        uint8_t* params) {
  const int64_t bad = first_non_finite(values, shape.head_dim);
  if (bad >= 0) return {Fault::non_finite, 0, bad, values[bad]};
  for (int begin = 0, g = 0; begin < shape.head_dim; begin += shape.group, ++g) {
    const int end = std::min(begin + shape.group, shape.head_dim);
    float scale = 0;
    const EncodeResult made = make_scale<Type>(shape, values, {begin, end, g}, params, &scale);
    if (!made.ok()) return made;
    const float divisor = scale == 0 ? 1.0f : scale;
    for (int i = begin; i < end; ++i) codes[i] = Type::encode(values[i] / divisor);
  }
  return {};
}

template <typename Type>
void decode_row(const RowShape& shape, const uint8_t* codes, const uint8_t* params, float* values) {
  for (int begin = 0, g = 0; begin < shape.head_dim; begin += shape.group, ++g) {
    const int end = std::min(begin + shape.group, shape.head_dim);
    const float scale = shape.variant.calibrated ? shape.variant.constant
                                                 : half_to_float(read_at<uint16_t>(params + 2 * g));
    for (int i = begin; i < end; ++i) values[i] = Type::decode(codes[i]) * scale;
  }
}

template <typename Type>
Codec fp8(std::string_view name, kernels::CodeKind code) {
  Codec codec;
  codec.name = name;
  codec.bits = 8;
  codec.code = code;
  codec.params = kernels::ParamKind::half_scale;
  codec.calibration = Calibration::optional;
  codec.encode_row = encode_row<Type>;
  codec.decode_row = decode_row<Type>;
  return codec;
}

}  // namespace

Codec fp8_e4m3() {
  return fp8<E4m3Type>("fp8_e4m3", kernels::CodeKind::e4m3);
}
Codec fp8_e5m2() {
  return fp8<E5m2Type>("fp8_e5m2", kernels::CodeKind::e5m2);
}

}  // namespace kvsweep::codec
