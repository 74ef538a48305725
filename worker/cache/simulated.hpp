// Simulated codes: what a published quantizer makes of rows, computed by its reference codec and
// kept as floats. For schemes whose published caches read their codes back and code them again,
// which pages of codes, written once, cannot hold (docs/decisions/0007).
#pragma once

#include <cstdint>
#include <vector>

#include "core/format.hpp"
#include "worker/codec/codec.hpp"

namespace kvsweep::cache {

// The codec behind a simulated format.
const codec::Codec& reference_codec(const Format& format);

// Rows of one side, [tokens][heads][head_dim].
struct SimulatedShape {
  int64_t tokens = 0;
  int heads = 0;
  int head_dim = 0;
};

// Codes and decodes all rows in place, as KVTuner's flat reshape does. A group is `format.group`
// elements (0: head_dim) that follow one another in
//   axis token    [heads][tokens][head_dim], so groups lie within a token where they divide it
//   axis channel  [heads][head_dim][tokens], so a group begins in one channel and ends in the next
//                 where it does not divide the tokens
// The last group is shorter where the elements do not fill it; the published code stops there.
// Example: 5 tokens of one head of 2 channels, groups of 4: {c0 t0-3}, {c0 t4, c1 t0-2}, {c1 t3-4}.
// On a fault token and channel are those of `rows` and *head is the head.
// Source: cmd2001/KVTuner, flexible_quant/vanilla_quantizer.py (reshape to groups).
codec::EncodeResult recode(const Format& format, const SimulatedShape& shape, float* rows,
                           int* head);

// Codes and decodes one channel block of one head in place: [format.group][head_dim].
codec::EncodeResult code_block(const Format& format, int head_dim, float* rows);

}  // namespace kvsweep::cache
