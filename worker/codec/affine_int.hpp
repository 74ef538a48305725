// Native integer codec at 8, 4, 3 and 2 bits, asymmetric or symmetric (codec ids: fp32 mode).
#pragma once

#include "worker/codec/codec.hpp"

namespace kvsweep::codec {

// Per group, in fp32, never contracted, ties to even (levels = 2^bits - 1):
//   min    = min(x) rounded DOWN to fp16 and stored; so the stored min may lie below every x
//   range  = max(x) - min             recomputed from the stored min
//   scale  = range / levels rounded UP to fp16 and stored; at least 2^-24 when range > 0
//   code   = rint((x - min) / scale)  with the stored values: 0 .. levels without clipping, since
//            scale >= fl(range / levels) and division and rounding are monotone
//   x^     = code * scale + min
// range = 0 happens only when all x are equal and exactly an fp16: codes and scale are 0 and x^ is
// the stored min. Zeros are stored as +0. Error: |x^ - x| <= scale / 2 plus the rounding
// of four fp32 operations, 4 * 2^-24 * (|x| + levels * scale).
// Worked example, 2 bits, x = {1, 2, 4}: min 1, range 3, scale 1, codes {0, 1, 3}, x^ = x.
//
// Symmetric (limit = 2^(bits-1) - 1, middle = 2^(bits-1)):
//   scale  = max |x| / limit rounded UP to fp16; alone stored, at least 2^-24 unless all x are 0
//   code   = rint(x / scale) + middle     middle - limit .. middle + limit: one code is never used
//   x^     = (code - middle) * scale      exact in fp32, so it may be computed as
//            code * scale + (-middle * scale) without another result
// Worked example, 4 bits, x = {-7, 3.5}: scale 1, codes {1, 12}: 3.5 ties to 4, x^ = {-7, 4}.
//
// 3-bit rows are padded with zero codes to a multiple of 32 elements (docs/decisions/0004-int3.md).
// Source: the paper form of KVTuner (arXiv 2502.04420) and KIVI (arXiv 2402.02750) with a float
// offset; directed rounding of the stored fp16 parameters is ours: encoder and decoder use equal
// numbers, so nothing clips. O(elements); the elements are read twice.
Codec affine_int8();
Codec affine_int4();
Codec affine_int3();
Codec affine_int2();

}  // namespace kvsweep::codec
