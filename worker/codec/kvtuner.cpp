#include "worker/codec/kvtuner.hpp"

#include <algorithm>
#include <cmath>

#include "worker/codec/bytes.hpp"
#include "worker/codec/elements.hpp"
#include "worker/codec/half.hpp"

namespace kvsweep::codec {
namespace {

struct Fp32 {
  using Stored = float;
  static float round(float x) { return x; }
  static Stored store(float x) { return x; }
  static float load(Stored x) { return x; }
};

struct Bf16 {
  using Stored = uint16_t;
  static float round(float x) { return bf16_to_float(float_to_bf16(x)); }
  static Stored store(float x) { return float_to_bf16(x); }
  static float load(Stored x) { return bf16_to_float(x); }
};

struct Params {
  float scale = 0;
  float zero = 0;
};

// Element i of a group lies at values + i * stride.
struct Group {
  const float* values = nullptr;
  int64_t stride = 1;
  int count = 0;
  float at(int i) const { return values[i * stride]; }
};

template <int Bits, typename R>
struct Quantizer {
  static constexpr float kLow = -static_cast<float>(1 << (Bits - 1));
  static constexpr float kHigh = static_cast<float>((1 << (Bits - 1)) - 1);
  static constexpr int kPerByte = 8 / Bits;
  static constexpr int64_t kParamBytes = 2 * sizeof(typename R::Stored);

  // `index` becomes the element that is to blame.
  static Fault make_params(const Group& group, Params* params, int* index) {
    int low = 0;
    int high = 0;
    for (int i = 0; i < group.count; ++i) {
      if (!std::isfinite(R::round(group.at(i)))) {
        *index = i;
        return Fault::non_finite;
      }
      if (group.at(i) < group.at(low)) low = i;
      if (group.at(i) > group.at(high)) high = i;
    }
    const float min = R::round(group.at(low));
    const float range = std::max(R::round(R::round(group.at(high)) - min), R::round(1e-5f));
    params->scale = R::round(range / (kHigh - kLow));
    *index = high;
    if (!std::isfinite(params->scale)) return Fault::scale_range;
    params->zero = R::round(std::nearbyint(R::round(min / params->scale)) - kLow);
    *index = low;
    return std::isfinite(params->zero) ? Fault::none : Fault::offset_range;
  }

  static unsigned encode(float value, const Params& p) {
    const float steps = R::round(R::round(R::round(value) / p.scale) - p.zero);
    const float q = std::clamp(std::nearbyint(steps), kLow, kHigh);
    return static_cast<unsigned>(q - kLow);
  }

  static float decode(unsigned code, const Params& p) {
    return R::round(R::round((static_cast<float>(code) + kLow) + p.zero) * p.scale);
  }

  static void store(const Params& p, int64_t group, uint8_t* params) {
    uint8_t* at = params + group * kParamBytes;
    write_at(at, R::store(p.scale));
    write_at(at + kParamBytes / 2, R::store(p.zero));
  }
  static Params load(int64_t group, const uint8_t* params) {
    using Stored = typename R::Stored;
    const uint8_t* at = params + group * kParamBytes;
    return {R::load(read_at<Stored>(at)), R::load(read_at<Stored>(at + kParamBytes / 2))};
  }

  static void put(uint8_t* row, int64_t i, unsigned code) {
    uint8_t& byte = row[i / kPerByte];
    const int shift = static_cast<int>(i % kPerByte) * Bits;
    const unsigned others = byte & ~(((1u << Bits) - 1u) << shift);
    byte = static_cast<uint8_t>(others | code << shift);
  }
  static unsigned get(const uint8_t* row, int64_t i) {
    const int shift = static_cast<int>(i % kPerByte) * Bits;
    return row[i / kPerByte] >> shift & ((1u << Bits) - 1u);
  }

  static EncodeResult encode_row(const RowShape& shape, const float* values, uint8_t* codes,
                                 uint8_t* params) {
    for (int begin = 0, g = 0; begin < shape.head_dim; begin += shape.group, ++g) {
      const Group group{values + begin, 1, std::min(shape.group, shape.head_dim - begin)};
      Params p;
      int index = 0;
      const Fault fault = make_params(group, &p, &index);
      if (fault != Fault::none) return {fault, 0, begin + index, group.at(index)};
      store(p, g, params);
      for (int i = 0; i < group.count; ++i) put(codes, begin + i, encode(group.at(i), p));
    }
    return {};
  }

  static void decode_row(const RowShape& shape, const uint8_t* codes, const uint8_t* params,
                         float* values) {
    for (int i = 0; i < shape.head_dim; ++i) {
      values[i] = decode(get(codes, i), load(i / shape.group, params));
    }
  }

  static EncodeResult encode_block(const BlockShape& shape, const float* values, uint8_t* codes,
                                   uint8_t* params) {
    for (int c = 0; c < shape.head_dim; ++c) {
      const Group group{values + c, shape.head_dim, shape.tokens};
      Params p;
      int index = 0;
      const Fault fault = make_params(group, &p, &index);
      if (fault != Fault::none) return {fault, index, c, group.at(index)};
      store(p, c, params);
      for (int t = 0; t < shape.tokens; ++t) {
        put(codes + t * shape.row_bytes, c, encode(group.at(t), p));
      }
    }
    return {};
  }

  static void decode_block(const BlockShape& shape, const uint8_t* codes, const uint8_t* params,
                           float* values) {
    for (int c = 0; c < shape.head_dim; ++c) {
      const Params p = load(c, params);
      for (int64_t t = 0; t < shape.tokens; ++t) {
        values[t * shape.head_dim + c] = decode(get(codes + t * shape.row_bytes, c), p);
      }
    }
  }
};

template <typename R>
EncodeResult symmetric(const SymmetricShape& shape, float* values) {
  const auto high = static_cast<float>((1 << (shape.bits - 1)) - 1);
  for (int begin = 0; begin < shape.count; begin += shape.group) {
    const int end = std::min(begin + shape.group, shape.count);
    float largest = 0;
    for (int i = begin; i < end; ++i) {
      const float size = std::abs(R::round(values[i]));
      if (!std::isfinite(size)) return {Fault::non_finite, 0, i, values[i]};
      largest = std::max(largest, size);
    }
    const float scale = R::round(std::max(largest, R::round(1e-5f)) / high);
    for (int i = begin; i < end; ++i) {
      const float steps = R::round(R::round(values[i]) / scale);
      values[i] = R::round(std::clamp(std::nearbyint(steps), -high - 1, high) * scale);
    }
  }
  return {};
}

template <int Bits, typename R>
Codec kvtuner(std::string_view name, kernels::CodeKind code, kernels::ParamKind params) {
  using Q = Quantizer<Bits, R>;
  Codec codec;
  codec.name = name;
  codec.bits = Bits;
  codec.code = code;
  codec.params = params;
  codec.encode_row = Q::encode_row;
  codec.decode_row = Q::decode_row;
  codec.encode_block = Q::encode_block;
  codec.decode_block = Q::decode_block;
  return codec;
}

constexpr auto kFp32 = kernels::ParamKind::float_scale_zero;
constexpr auto kBf16 = kernels::ParamKind::bf16_scale_zero;

}  // namespace

Codec kvtuner_int8() {
  return kvtuner<8, Fp32>("int8-kvtuner", kernels::CodeKind::uint8, kFp32);
}
Codec kvtuner_int4() {
  return kvtuner<4, Fp32>("int4-kvtuner", kernels::CodeKind::uint4, kFp32);
}
Codec kvtuner_int2() {
  return kvtuner<2, Fp32>("int2-kvtuner", kernels::CodeKind::uint2, kFp32);
}
Codec kvtuner_int8_bf16() {
  return kvtuner<8, Bf16>("int8-kvtuner-bf16", kernels::CodeKind::uint8, kBf16);
}
Codec kvtuner_int4_bf16() {
  return kvtuner<4, Bf16>("int4-kvtuner-bf16", kernels::CodeKind::uint4, kBf16);
}
Codec kvtuner_int2_bf16() {
  return kvtuner<2, Bf16>("int2-kvtuner-bf16", kernels::CodeKind::uint2, kBf16);
}

EncodeResult kvtuner_symmetric(const SymmetricShape& shape, float* values) {
  return shape.bf16 ? symmetric<Bf16>(shape, values) : symmetric<Fp32>(shape, values);
}

}  // namespace kvsweep::codec
