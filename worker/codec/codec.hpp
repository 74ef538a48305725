// What the cache asks of a packed format: encode and decode token rows and channel blocks. One
// format family per file; codecs.def lists them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "worker/kernels/packed.hpp"

namespace kvsweep::codec {

enum class Fault : uint8_t {
  none,
  non_finite,     // an input is NaN or infinite
  offset_range,   // the group's offset cannot be stored: |min| above 65504 (fp16)
  scale_range,    // the group's step cannot be stored: above 65504 (fp16)
  scale_missing,  // a calibrated scale is asked for and is not a finite positive number
};

// Where encoding stopped: the first offending element. Nothing useful was stored then.
struct EncodeResult {
  Fault fault = Fault::none;
  int64_t token = 0;    // within the row (always 0) or block
  int64_t channel = 0;  // within head_dim
  float value = 0;      // that element; the scale for scale_missing
  bool ok() const { return fault == Fault::none; }
};

// Choices within a codec, fixed for one side of one layer. Only what the codec supports may be set.
struct Variant {
  bool symmetric = false;   // integers: no offset, half the parameters
  bool calibrated = false;  // `constant` is the scale: per side (fp8, none is stored then) or
                            // beside the stored ones (nvfp4's tensor scale)
  float constant = 0;       // > 0 when calibrated
};

// One token of one head. Groups of `group` consecutive elements run along head_dim, the last may be
// shorter; parameters per group.
struct RowShape {
  int head_dim = 0;  // a multiple of 8 / bits (int3: any), as is `group` (int3: of 8)
  int group = 0;     // 1 .. head_dim; the whole head = head_dim. Codec::fixed_group where not 0
  Variant variant;
};

// One channel group: `tokens` consecutive tokens of one head, parameters per channel.
struct BlockShape {
  int head_dim = 0;  // a multiple of 8 / bits (int3: any)
  int tokens = 0;
  int64_t row_bytes = 0;  // from one token's codes to the next's
  Variant variant;
};

enum class Calibration : uint8_t { never, optional, required };

// Codes and parameters are bytes as worker/kernels/packed.hpp describes, parameters of one group
// after the other's. Pointers need no alignment; all functions are thread-safe and read and write
// only what the shapes say. A function is nullptr where the codec has no such axis.
struct Codec {
  std::string_view name;  // as in core/catalog/codecs.def
  int bits = 0;           // nominal, per element
  kernels::CodeKind code = kernels::CodeKind::uint8;
  kernels::ParamKind params = kernels::ParamKind::half_scale_min;  // of the plain variant
  bool supports_symmetric = false;
  Calibration calibration = Calibration::never;
  int fixed_group = 0;  // 0: any group; else the only one (tokens of a block on the channel axis)

  // values [head_dim] -> codes [row_bytes], params [ceil(head_dim / group)][param_bytes]
  EncodeResult (*encode_row)(const RowShape&, const float* values, uint8_t* codes,
                             uint8_t* params) = nullptr;
  void (*decode_row)(const RowShape&, const uint8_t* codes, const uint8_t* params,
                     float* values) = nullptr;
  // values [tokens][head_dim] -> codes [tokens / row_tokens] rows, params [head_dim][param_bytes]
  EncodeResult (*encode_block)(const BlockShape&, const float* values, uint8_t* codes,
                               uint8_t* params) = nullptr;
  void (*decode_block)(const BlockShape&, const uint8_t* codes, const uint8_t* params,
                       float* values) = nullptr;

  // Bytes of one row of codes of one head, and the tokens that it holds (1; word11: 11).
  int64_t row_bytes(int head_dim) const { return kernels::row_bytes(code, head_dim); }
  int row_tokens() const { return kernels::row_tokens(code); }
  // Bytes of one group's parameters.
  int param_bytes(const Variant& variant) const {
    return kernels::param_bytes(packed(variant).params);
  }
  bool supports(const Variant& variant) const;
  // What the decoding loops need to know (kernels::PackedTile).
  kernels::PackedFormat packed(const Variant& variant) const;
};

const std::vector<Codec>& codecs();
const Codec* find_codec(std::string_view name);  // nullptr: no such packed format

}  // namespace kvsweep::codec
