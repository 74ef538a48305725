// Reference codec: the 3-bit word of KVmix, which holds 11 elements in 32 bits. Dominated by int3
// of the same group; kept to reproduce published results.
#pragma once

#include "worker/codec/codec.hpp"

namespace kvsweep::codec {

// Channel axis, blocks of exactly 11 tokens, in fp32:
//   s  = (max(x) - min(x)) / 7
//   q  = clamp(round((x - min(x)) / s), 0, 7), halves away from zero; token 10 is clamped to 3,
//   since
//        only 2 bits are left for it: it reaches the lowest 3/7 of the range
//   x^ = q * s16 + min16, s16 and min16 being s and min(x) rounded to the nearest fp16 and stored
// The codes rest on the unrounded s, so x^ is not bound by half a step. s = 0: q = 0.
// Codes are one word per channel: token t in bits 3t .. 3t+2, token 10 in bits 30 and 31; a row of
// codes holds 11 tokens (kernels::CodeKind::word11). 64 bits per 11 elements: 5.82 effective bits.
// Worked example, x = {0, 7, 0, ... , 0, 7}: s = 1, codes {0, 7, 0, ... , 0, 3}, x^ = {0, 7, ... ,
// 3}. Source: LfLab-AI/KVmix, quant_cuda/csrc/quantization_cuda.cu (the 3-bit key kernel).
Codec kvmix_int3_11pack();

}  // namespace kvsweep::codec
