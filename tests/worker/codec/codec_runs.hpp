// One encoding and decoding, with guard bytes behind the outputs, and the bound on its error.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/worker/codec/codec_cases.hpp"
#include "worker/codec/half.hpp"

namespace kvsweep::codec::testing {

struct Coded {
  EncodeResult result;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> params;
  std::vector<float> y;
};

inline Coded run(const Codec& codec, const Layout& l, const std::vector<float>& x) {
  constexpr size_t kGuard = 16;
  const auto code_size = static_cast<size_t>(code_bytes(codec, l));
  const auto param_size = static_cast<size_t>(param_bytes(codec, l));
  Coded out{{},
            std::vector<uint8_t>(code_size + kGuard, 0xaa),
            std::vector<uint8_t>(param_size + kGuard, 0xbb),
            {}};
  out.result = encode(codec, l, x.data(), out.codes.data(), out.params.data());
  if (out.result.ok()) out.y = decode(codec, l, out.codes.data(), out.params.data());
  for (size_t i = 0; i < kGuard; ++i) {
    EXPECT_EQ(out.codes[code_size + i], 0xaa);
    EXPECT_EQ(out.params[param_size + i], 0xbb);
  }
  out.codes.resize(code_size);
  out.params.resize(param_size);
  return out;
}

template <typename T>
inline T stored(const std::vector<uint8_t>& bytes, int64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

// Distance between neighbours of a floating grid at magnitude q.
inline double spacing(double q, int mantissa, int smallest_exponent) {
  const int exponent = q > 0 ? std::max(std::ilogb(q), smallest_exponent) : smallest_exponent;
  return std::ldexp(1.0, exponent - mantissa);
}

// What |x^ - x| may be at most in a group with these stored parameters, in float64; the headers of
// the codecs derive it.
inline double error_bound(const Codec& codec, const Layout& l, const Coded& got, double x, int t,
                          int d) {
  using kernels::CodeKind;
  using kernels::ParamKind;
  const kernels::PackedFormat format = codec.packed(l.variant);
  const int64_t per_row = (l.head_dim + l.group - 1) / l.group;
  const int64_t group =
      l.channel ? int64_t{t / l.group} * l.head_dim + d : t * per_row + d / l.group;
  const int64_t at = group * kernels::param_bytes(format.params);
  const double magnitude = std::fabs(x);
  const auto half = [&](int64_t offset) {
    return double(half_to_float(stored<uint16_t>(got.params, at + offset)));
  };
  if (format.params == ParamKind::float_scale_zero) {
    const double scale = stored<float>(got.params, at);
    return scale + 8 * 0x1p-24 * (magnitude + scale * 255);
  }
  if (format.params == ParamKind::bf16_scale_zero) {
    const double scale = bf16_to_float(stored<uint16_t>(got.params, at));
    const double zero = bf16_to_float(stored<uint16_t>(got.params, at + 2));
    return scale + 4 * 0x1p-8 * (magnitude + scale * (std::fabs(zero) + (1 << codec.bits)));
  }
  if (format.code == CodeKind::word11) {
    const double scale = half(0), min = half(2);
    const double past = t % 11 == 10 ? std::max(0.0, x - min - 3 * scale) : 0.0;
    return std::max(scale / 2, past) + 0x1p-10 * (magnitude + std::fabs(min) + 8 * scale) + 0x1p-21;
  }
  if (format.code == CodeKind::e4m3 || format.code == CodeKind::e5m2) {
    const bool wide = format.code == CodeKind::e5m2;
    const double scale = l.variant.calibrated ? l.variant.constant : half(0);
    const double largest = wide ? 57344 : 448;
    if (magnitude > largest * scale)
      return (magnitude - largest * scale) * (1 + 1e-6) + 1e-6 * magnitude;
    const double step = spacing(magnitude / scale, wide ? 2 : 3, wide ? -14 : -6) * scale;
    return step / 2 + 4 * 0x1p-24 * magnitude;
  }
  if (format.code == CodeKind::e2m1) {
    const uint8_t byte = got.params[at];
    const double stored_scale =
        byte >> 3 == 0 ? std::ldexp(byte, -9) : std::ldexp(8 + (byte & 7), (byte >> 3) - 10);
    const double block = format.params == ParamKind::e8m0_scale ? std::ldexp(1.0, byte - 127)
                                                                : stored_scale * l.variant.constant;
    if (magnitude > 6 * block) return (magnitude - 6 * block) * (1 + 1e-5) + 1e-6 * magnitude;
    return spacing(magnitude / block, 1, 0) * block / 2 + 4 * 0x1p-24 * (magnitude + block);
  }
  return half(0) / 2 + 4 * 0x1p-24 * (magnitude + half(0) * (1 << codec.bits));
}

}  // namespace kvsweep::codec::testing
