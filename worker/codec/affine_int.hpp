// Native asymmetric integer codec at 8, 4 and 2 bits (codec id: fp32 mode).
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
// Source: the paper form of KVTuner (arXiv 2502.04420) and KIVI (arXiv 2402.02750) with a float
// offset; directed rounding of the stored fp16 parameters is ours: encoder and decoder use equal
// numbers, so nothing clips. O(elements); the elements are read twice.
Codec affine_int8();
Codec affine_int4();
Codec affine_int2();

}  // namespace kvsweep::codec
