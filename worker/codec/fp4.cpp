#include "worker/codec/fp4.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "worker/codec/elements.hpp"
#include "worker/codec/small_float.hpp"

namespace kvsweep::codec {
namespace {

// A scale byte for the group's largest magnitude, and the value of a scale byte.
struct Nvfp4 {
  static constexpr int kGroup = 16;
  static constexpr bool kNeedsConstant = true;
  static uint8_t scale_code(float largest, float tensor_scale) {
    const uint8_t code = float_to_e4m3((largest / kE2m1Max) / tensor_scale);
    return largest > 0 && code == 0 ? uint8_t{1} : code;
  }
  static float block(uint8_t code, float tensor_scale) {
    return e4m3_to_float(code) * tensor_scale;
  }
};

struct Mxfp4 {
  static constexpr int kGroup = 32;
  static constexpr bool kNeedsConstant = false;
  static uint8_t scale_code(float largest, float) {
    // floor(log2) of a normal float is its exponent; subnormals end at the smallest scale anyway.
    const int exponent = static_cast<int>(std::bit_cast<uint32_t>(largest) >> 23) - 127;
    return static_cast<uint8_t>(std::max(exponent - 2, -127) + 127);
  }
  static float block(uint8_t code, float) { return e8m0_to_float(code); }
};

// Nothing of a row may decode to infinity, nor a scale of the tensor vanish.
bool usable(float tensor_scale) {
  return tensor_scale > 0 && std::isfinite(tensor_scale * (kE2m1Max * kE4m3Max)) &&
         tensor_scale >= 0x1p-100f;
}

void pack(const uint8_t* values, int head_dim, uint8_t* codes) {
  for (int i = 0; i < head_dim; i += 2) {
    codes[i / 2] = static_cast<uint8_t>(values[i] | values[i + 1] << 4);
  }
}

template <typename Type>
EncodeResult encode_row(const RowShape& shape, const float* values, uint8_t* codes,
                        uint8_t* params) {
  const float constant = shape.variant.constant;
  if (Type::kNeedsConstant && !(shape.variant.calibrated && usable(constant))) {
    return {Fault::scale_missing, 0, 0, constant};
  }
  const int64_t bad = first_non_finite(values, shape.head_dim);
  if (bad >= 0) return {Fault::non_finite, 0, bad, values[bad]};
  uint8_t chunk[Type::kGroup];
  for (int begin = 0; begin < shape.head_dim; begin += Type::kGroup) {
    const int count = std::min(Type::kGroup, shape.head_dim - begin);
    const float largest = max_magnitude(values + begin, count);
    const uint8_t scale = Type::scale_code(largest, constant);
    params[begin / Type::kGroup] = scale;
    // A block of 0 holds zeros only: their signs are kept.
    const float block = Type::block(scale, constant);
    const float divisor = block == 0 ? 1.0f : block;
    for (int i = 0; i < count; ++i) chunk[i] = float_to_e2m1(values[begin + i] / divisor);
    pack(chunk, count, codes + begin / 2);
  }
  return {};
}

template <typename Type>
void decode_row(const RowShape& shape, const uint8_t* codes, const uint8_t* params, float* values) {
  for (int i = 0; i < shape.head_dim; ++i) {
    const float block = Type::block(params[i / Type::kGroup], shape.variant.constant);
    const auto code = static_cast<uint8_t>(codes[i / 2] >> (i % 2 * 4) & 15);
    values[i] = e2m1_to_float(code) * block;
  }
}

template <typename Type>
Codec fp4(std::string_view name, kernels::ParamKind params, Calibration calibration) {
  Codec codec;
  codec.name = name;
  codec.bits = 4;
  codec.code = kernels::CodeKind::e2m1;
  codec.params = params;
  codec.calibration = calibration;
  codec.fixed_group = Type::kGroup;
  codec.encode_row = encode_row<Type>;
  codec.decode_row = decode_row<Type>;
  return codec;
}

}  // namespace

Codec nvfp4() {
  return fp4<Nvfp4>("nvfp4", kernels::ParamKind::e4m3_scale, Calibration::required);
}
Codec mxfp4() {
  return fp4<Mxfp4>("mxfp4", kernels::ParamKind::e8m0_scale, Calibration::never);
}

}  // namespace kvsweep::codec
