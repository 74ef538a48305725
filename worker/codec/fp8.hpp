// 8-bit floating codecs E4M3 and E5M2 (OCP OFP8), with a scale per group that is always stored or
// calibrated, never assumed to be 1.
#pragma once

#include "worker/codec/codec.hpp"

namespace kvsweep::codec {

// Token axis. Per group, in fp32 (largest = 448 for E4M3, 57344 for E5M2):
//   scale = max |x| / largest rounded UP to fp16 and stored; at least 2^-24 unless all x are 0
//   code  = x / scale rounded to nearest even on the type's grid; nothing saturates, since
//           scale >= fl(max |x| / largest)
//   x^    = value(code) * scale       exact in fp32: 4 by 11 significant bits
// fp16 holds every scale that matters: above 65504 max |x| would be 2.9e7 (E4M3; a typed fault),
// and below 2^-24 the type's own exponent takes over, down to |x| = 2^-30 (E4M3), 2^-38 (E5M2)
// without a loss of relative precision. An fp32 scale would double the parameters for nothing.
// Calibrated variant: scale = Variant::constant, nothing is stored, |x| > largest * scale
// saturates; x^ is rounded once. Fault::scale_missing unless the constant is positive and
// largest * constant is finite.
// The sign of a zero is kept. Error: |x^ - x| <= scale * spacing / 2 with the spacing of the grid
// at x / scale (relative 2^-4 for E4M3, 2^-3 for E5M2; absolute scale * 2^-10, 2^-17 near 0), plus
// the rounding of one division.
// Worked example, E4M3, x = {448, 1.0625}: scale 1, 1.0625 ties between 1 and 1.125 and becomes 1.
// E5M2 has two bits of mantissa: it is for outliers of the exponent range only (vLLM issue 41343).
Codec fp8_e4m3();
Codec fp8_e5m2();

}  // namespace kvsweep::codec
