// What the cache asks of a packed format: encode and decode token rows and channel blocks. One
// format family per file; codecs.def lists them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kvsweep::codec {

enum class Fault : uint8_t {
  none,
  non_finite,    // an input is NaN or infinite
  offset_range,  // the group's minimum leaves +-65504, the range of a stored fp16
  scale_range,   // the group's step leaves 65504
};

// Where encoding stopped: the first offending element. Nothing useful was stored then.
struct EncodeResult {
  Fault fault = Fault::none;
  int64_t token = 0;    // within the row (always 0) or block
  int64_t channel = 0;  // within head_dim
  float value = 0;      // that element
  bool ok() const { return fault == Fault::none; }
};

// One token of one head. Groups of `group` consecutive elements run along head_dim, the last may be
// shorter; parameters are {scale, min} per group.
struct RowShape {
  int head_dim = 0;  // a multiple of 8 / bits, as is `group`
  int group = 0;     // 1 .. head_dim; the whole head = head_dim
};

// One channel group: `tokens` consecutive tokens of one head, one {scale, min} per channel.
struct BlockShape {
  int head_dim = 0;  // a multiple of 8 / bits
  int tokens = 0;
  int64_t row_bytes = 0;  // from one token's codes to the next's
};

// Element i of a row occupies bits i*b .. i*b+b-1 of its codes, little-endian. Parameters are fp16
// bit patterns, scale first. Pointers need no alignment beyond their type's; all functions are
// thread-safe and read and write only what the shapes say.
struct Codec {
  std::string_view name;  // as in core/catalog/codecs.def
  int bits = 0;
  // values [head_dim] -> codes [head_dim * bits / 8], params [ceil(head_dim / group)][2]
  EncodeResult (*encode_row)(const RowShape&, const float* values, uint8_t* codes,
                             uint16_t* params) = nullptr;
  void (*decode_row)(const RowShape&, const uint8_t* codes, const uint16_t* params,
                     float* values) = nullptr;
  // values [tokens][head_dim] -> codes [tokens] rows, params [head_dim][2]
  EncodeResult (*encode_block)(const BlockShape&, const float* values, uint8_t* codes,
                               uint16_t* params) = nullptr;
  void (*decode_block)(const BlockShape&, const uint8_t* codes, const uint16_t* params,
                       float* values) = nullptr;
};

const std::vector<Codec>& codecs();
const Codec* find_codec(std::string_view name);  // nullptr: no such packed format

}  // namespace kvsweep::codec
