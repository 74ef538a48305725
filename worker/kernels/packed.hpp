// What the bytes of a packed format mean: the kinds of codes and of parameters. The codecs write
// them, the loops of cpu_ops.hpp read them, and both take their sizes from here.
#pragma once

#include <cstdint>

namespace kvsweep::kernels {

// Codes of one row = one token of one head: element i occupies bits i*b .. i*b+b-1, little-endian.
// Rows of uint3 are padded with zeros to a multiple of 32 elements, three 32-bit words.
// word11 is a row of 11 tokens: one little-endian 32-bit word per channel, token t in bits 3t ..
// 3t+2, token 10 in bits 30 and 31.
enum class CodeKind : uint8_t { uint8, uint4, uint3, uint2, e4m3, e5m2, e2m1, word11 };

// Parameters of one group, and the value they give to a code c (`mid` = half the number of codes).
// Every operation is rounded to fp32 on its own, never fused.
enum class ParamKind : uint8_t {
  none,              // nothing is stored                     c * constant
  half_scale_min,    // fp16 scale, fp16 min                  c * scale + min
  half_scale,        // fp16 scale       integers: (c - mid) * scale, floats: c * scale
  e4m3_scale,        // E4M3 scale                            c * (scale * constant)
  e8m0_scale,        // E8M0: 2^(byte - 127)                  c * scale
  float_scale_zero,  // fp32 scale, fp32 zero                ((c - mid) + zero) * scale
  bf16_scale_zero,   // bf16 scale, bf16 zero; the same, each operation rounded to bf16
};

// All that decoding needs besides pointers and shapes.
struct PackedFormat {
  CodeKind code = CodeKind::uint8;
  ParamKind params = ParamKind::half_scale_min;
  float constant = 0;  // the calibrated scale, where ParamKind asks for one
};

constexpr int64_t row_bytes(CodeKind kind, int head_dim) {
  switch (kind) {
    case CodeKind::uint4:
    case CodeKind::e2m1:
      return (int64_t{head_dim} + 1) / 2;
    case CodeKind::uint3:
      return (int64_t{head_dim} + 31) / 32 * 12;
    case CodeKind::uint2:
      return (int64_t{head_dim} + 3) / 4;
    case CodeKind::word11:
      return int64_t{head_dim} * 4;
    default:
      return head_dim;
  }
}

// Tokens whose codes lie in one row.
constexpr int row_tokens(CodeKind kind) {
  return kind == CodeKind::word11 ? 11 : 1;
}

// Bytes of one group's parameters.
constexpr int param_bytes(ParamKind kind) {
  switch (kind) {
    case ParamKind::none:
      return 0;
    case ParamKind::half_scale_min:
    case ParamKind::bf16_scale_zero:
      return 4;
    case ParamKind::half_scale:
      return 2;
    case ParamKind::e4m3_scale:
    case ParamKind::e8m0_scale:
      return 1;
    case ParamKind::float_scale_zero:
      break;
  }
  return 8;
}

}  // namespace kvsweep::kernels
