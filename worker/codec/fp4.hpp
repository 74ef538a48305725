// 4-bit floating codecs: E2M1 elements, values +-{0, 0.5, 1, 1.5, 2, 3, 4, 6}, with a one-byte
// scale per group along head_dim (token axis).
#pragma once

#include "worker/codec/codec.hpp"

namespace kvsweep::codec {

// nvfp4: groups of 16, the last may be shorter. Variant::constant is the tensor scale T, calibrated
// and required: 1 is used only when the caller says 1. In fp32, each operation rounded:
//   scale = E4M3((max |x| / 6) / T)   to nearest even, saturating at 448, at least 2^-9 unless all
//   x
//                                     are 0: a smaller group would otherwise vanish
//   block = scale * T
//   code  = E2M1(x / block)           to nearest even, saturating: |x| > 6 * block becomes 6
//   x^    = value(code) * block
// Error: half the spacing of the grid (0.25, 0.5 or 1) times block up to 6 * block; |x| - 6 * block
// beyond. The rounded scale is at most 1/16 too small (above 2^-6 * T), so max |x| loses at most
// 0.375 * block. Source: NVFP4 as FlashInfer and TensorRT-LLM decode it (E2M1, E4M3 per 16, fp32
// tensor scale). The floor of 2^-9 is ours. Calibration: T = max |x| of the side / (6 * 448).
// Worked example, T = 1, x = {6, 2.5}: scale 1, 2.5 ties between 2 and 3 and becomes 2.
Codec nvfp4();

// mxfp4: groups of 32, the last may be shorter, a power-of-two scale (E8M0), no constant.
//   e     = floor(log2(max |x|)) - 2  at least -127; -127 when all x are 0; stored as e + 127
//   code  = E2M1(x / 2^e)             exact division; to nearest even, saturating
//   x^    = value(code) * 2^e         exact
// max |x| / 2^e lies in [4, 8): what is above 6 becomes 6, an error of up to 2 * 2^e, as the
// specification has it. Source: OCP Microscaling Formats (MX) 1.0, section 6.3.
// Worked example, x = {7, 5}: e = 0, 7 becomes 6, 5 ties between 4 and 6 and becomes 4.
Codec mxfp4();

}  // namespace kvsweep::codec
