// Reference codecs: the asymmetric quantizer of KVTuner as its published code computes it, for
// comparisons with its results. Slow; not for new maps.
#pragma once

#include "worker/codec/codec.hpp"

namespace kvsweep::codec {

// Per group (qmin = -2^(bits-1), qmax = 2^(bits-1) - 1), R = rounding of every single operation to
// the arithmetic's type, half to even:
//   s  = R(max(R(max(x) - min(x)), R(1e-5)) / (qmax - qmin))
//   z  = R(round(R(min(x) / s)) - qmin)              an integer zero-point
//   q  = clip(round(R(R(x / s) - z)), qmin, qmax)    stored as q - qmin
//   x^ = R(R(q + z) * s)
// kvtuner_int*: R rounds to fp32; {s, z} stored as two fp32, 8 bytes per group.
// kvtuner_int*_bf16: R rounds to bf16, as in the published runs, inputs too; {s, z} stored as two
// bf16, 4 bytes. With offset groups z leaves bf16's 8 bits and the codec is lossy at any width: at
// group mean 32 its RMS error at 8 bits is 12 times that of fp32 (docs/codecs.md).
// Faults: non_finite; scale_range when s overflows; offset_range when z does (|min(x)| / s).
// There is no bound of half a step: round(min / s) moves the grid by up to half a step, and an
// element at the upper end may clip.
// Worked example, 2 bits, x = {0, 1, 3}: s = 1, z = 2, q = {-2, -1, 1}, x^ = x.
// Source: cmd2001/KVTuner, flexible_quant/vanilla_quantizer.py (quant_asym, dequant_asym).
Codec kvtuner_int8();
Codec kvtuner_int4();
Codec kvtuner_int2();
Codec kvtuner_int8_bf16();
Codec kvtuner_int4_bf16();
Codec kvtuner_int2_bf16();

// The symmetric form of the same source, coded and decoded in place; no scale is stored, so it is
// for simulation alone. Per group of `group` consecutive values, the last may be shorter:
//   s = R(max(R(max |x|), R(1e-5)) / (2^(bits-1) - 1)),  q = clip(round(R(x / s)), qmin, qmax),
//   x^ = R(q * s)
// R rounds to bf16 where `bf16`, else to fp32. On a fault `channel` is the index of the value.
struct SymmetricShape {
  int bits = 8;  // 8, 4, 2
  bool bf16 = false;
  int count = 0;
  int group = 0;
};
EncodeResult kvtuner_symmetric(const SymmetricShape& shape, float* values);

}  // namespace kvsweep::codec
