// Tiles of the reference codecs, element by element: their use is comparison, not speed.
#include "worker/kernels/cpu_codes.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

constexpr int kWordTokens = row_tokens(CodeKind::word11);

inline uint16_t read_half(const uint8_t* from) {
  uint16_t value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

inline float read_float(const uint8_t* from) {
  float value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

inline float widen_bf16(uint16_t bf16) {
  return as_float(static_cast<int32_t>(static_cast<uint32_t>(bf16) << 16));
}

inline float round_bf16(float value) {
  uint16_t rounded;
  narrow(Element::bf16, &value, 1, &rounded);
  return widen_bf16(rounded);
}

// Of groups that are one token long and those that are `group` tokens long.
const uint8_t* params_at(const PackedTile& tile, int t, int d) {
  const int groups = (tile.head_dim + tile.group - 1) / tile.group;
  const int64_t group = tile.channel_axis ? int64_t{t / tile.group} * tile.head_dim + d
                                          : int64_t{t} * groups + d / tile.group;
  return tile.params + group * param_bytes(tile.format.params);
}

int bits_of(CodeKind kind) {
  if (kind == CodeKind::uint8) return 8;
  return kind == CodeKind::uint4 ? 4 : 2;
}

// ((code - middle) + zero) * scale, each operation rounded to fp32 or bf16.
float zero_point_value(const PackedTile& tile, int t, int d) {
  const int bits = bits_of(tile.format.code);
  const int64_t row = row_bytes(tile.format.code, tile.head_dim);
  const int byte = tile.codes[t * row + d * bits / 8];
  const int code = byte >> (d * bits % 8) & ((1 << bits) - 1);
  const auto steps = static_cast<float>(code - (1 << (bits - 1)));
  const uint8_t* params = params_at(tile, t, d);
  if (tile.format.params == ParamKind::float_scale_zero) {
    return (steps + read_float(params + 4)) * read_float(params);
  }
  const float sum = round_bf16(steps + widen_bf16(read_half(params + 2)));
  return round_bf16(sum * widen_bf16(read_half(params)));
}

float word_value(const PackedTile& tile, int t, int d) {
  const int row = t / kWordTokens;
  uint32_t word;
  __builtin_memcpy(&word, tile.codes + (int64_t{row} * tile.head_dim + d) * 4, sizeof(word));
  const uint8_t* params = tile.params + (int64_t{row} * tile.head_dim + d) * 4;
  float pair[2];
  const uint16_t halves[2] = {read_half(params), read_half(params + 2)};
  widen_halves(halves, 2, pair);
  return static_cast<float>(word >> (3 * (t % kWordTokens)) & 7u) * pair[0] + pair[1];
}

}  // namespace

void reference_tile(const PackedTile& tile, TileStride stride, float* out) {
  const bool words = tile.format.code == CodeKind::word11;
  const int held = words ? tile.tokens / kWordTokens * kWordTokens : tile.tokens;
  for (int t = 0; t < tile.tokens; ++t) {
    for (int d = 0; d < tile.head_dim; ++d) {
      float value = 0;
      if (t < held) value = words ? word_value(tile, t, d) : zero_point_value(tile, t, d);
      out[t * stride.token + d * stride.channel] = value;
    }
  }
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
