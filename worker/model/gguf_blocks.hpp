// Blocks of llama.cpp as numbers.
//
// A block is a run of one row's elements with common parameters; halves are IEEE binary16. With q a
// code and d, m, s, z the parameters (ggml/src/ggml-common.h names the same fields):
//   Q4_0  32 elements: d, 16 bytes of nibbles                      x = d (q - 8)
//   Q4_1  32: d, m, nibbles                                        x = d q + m
//   Q5_0  32: d, 32 high bits, nibbles                             x = d (q - 16)
//   Q5_1  32: d, m, high bits, nibbles                             x = d q + m
//   Q8_0  32: d, 32 signed bytes                                   x = d q
//   Q4_K  256: d, m, 8 pairs (s, z) of 6 bits, nibbles             x = (d s) q - (m z), per 32
//   Q5_K  256: d, m, pairs, 256 high bits, nibbles                 x = (d s) q - (m z), per 32
//   Q6_K  256: nibbles, 256 x 2 high bits, 16 signed scales s, d   x = (d s) (q - 32), per 16
// Nibbles: of the 32-element types, element i < 16 is the low half of byte i, element i + 16 its
// high half. Q4_K and Q5_K store elements 64 c + l (low) and 64 c + 32 + l (high) in byte 32 c + l;
// Q6_K stores 128 c + l and 128 c + 64 + l in byte 64 c + l, for l < 64.
//
// Products are rounded to fp32 in the order written, so results equal those of the `gguf` package
// of Python bit for bit (except for the payload of NaN).
#pragma once

#include <cstdint>

#include "core/gguf.hpp"

namespace kvsweep::model {

// `elements`, a multiple of the block, from `blocks` into `out`. F32, F16 and BF16 are blocks of
// one element. O(elements).
void dequantize(GgmlType type, const uint8_t* blocks, int64_t elements, float* out);

}  // namespace kvsweep::model
