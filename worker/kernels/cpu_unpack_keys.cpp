// Packed pages to key tiles [head_dim][tokens]: strips of stored byte columns are transposed, then
// every code column is decoded over the tokens.
#include "worker/kernels/cpu_codes.hpp"
#include "worker/kernels/cpu_tiles.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

// Stored byte columns transposed at once, a whole number of codes: their tile fits on the stack.
template <typename Codes>
constexpr int kStripBytes = Codes::kBits == 3 ? 48 : 16;

// One channel of a transposed strip: column[j] is the code of token j. The bits of a code that
// straddles two bytes (3 bits) begin in `bytes` and end in `next`, the column behind.
template <int Bits, bool kStraddles>
struct Column {
  const uint8_t* bytes;
  const uint8_t* next;
  int shift;
  int operator[](int j) const {
    constexpr int kMask = (1 << Bits) - 1;
    if constexpr (Bits == 8) return bytes[j];
    if constexpr (kStraddles) return (bytes[j] >> shift | next[j] << (8 - shift)) & kMask;
    return bytes[j] >> shift & kMask;
  }
};

// out[j] = the value of code j. `scale` and `min` are one number for all, or one per token.
template <typename Codes, typename Codewise, typename Parameter>
inline void decode(Codewise codes, Parameter scale, Parameter min, int count, float* out) {
  if constexpr (kFloats<Codes>) {
    alignas(64) uint16_t halves[kMaxTileTokens];
    for (int j = 0; j < count; ++j) halves[j] = Codes::half(codes[j]);
    widen_halves(halves, count, out);
    for (int j = 0; j < count; ++j) out[j] = (out[j] * Codes::kFactor) * scale[j];
  } else {
    for (int j = 0; j < count; ++j) out[j] = static_cast<float>(codes[j]) * scale[j] + min[j];
  }
}

// Channel `channel` of a strip whose columns have `tokens` bytes, over `count` tokens.
template <typename Codes, typename Parameter>
inline void decode_column(const uint8_t* strip, int tokens, int channel, Parameter scale,
                          Parameter min, int count, float* out) {
  constexpr int kBits = Codes::kBits;
  const uint8_t* bytes = strip + channel * kBits / 8 * tokens;
  const int shift = channel * kBits % 8;
  if (kBits == 3 && shift > 5) {
    decode<Codes>(Column<kBits, true>{bytes, bytes + tokens, shift}, scale, min, count, out);
  } else {
    decode<Codes>(Column<kBits, false>{bytes, bytes, shift}, scale, min, count, out);
  }
}

// The strip's channels first .. first + channels of a channel-axis page.
template <typename Codes>
void decode_by_channel(const PackedTile& tile, const uint8_t* strip, int first, int channels,
                       Parameters& params, float* keys) {
  for (int t = 0; t < tile.tokens; t += tile.group) {
    params.load(int64_t{t / tile.group} * tile.head_dim + first, 1, channels);
    for (int c = 0; c < channels; ++c) {
      decode_column<Codes>(strip + t, tile.tokens, c, Same{params.scale[c]}, Same{params.min[c]},
                           tile.group, keys + int64_t{first + c} * tile.tokens + t);
    }
  }
}

template <typename Codes>
void keys_of(const PackedTile& tile, float* keys) {
  constexpr int kStrip = kStripBytes<Codes>;
  const int row_bytes = static_cast<int>(kernels::row_bytes(tile.format.code, tile.head_dim));
  const int groups = (tile.head_dim + tile.group - 1) / tile.group;
  alignas(64) uint8_t strip[kStrip * kMaxTileTokens];
  Parameters params(tile, Codes::kBits);
  int loaded = -1;  // token axis: the group whose parameters are in `params`
  for (int begin = 0; begin < row_bytes; begin += kStrip) {
    const int columns = row_bytes - begin < kStrip ? row_bytes - begin : kStrip;
    transpose<uint8_t>(tile.codes + begin, row_bytes, tile.tokens, columns, strip);
    const int first = begin * 8 / Codes::kBits;
    int channels = columns * 8 / Codes::kBits;  // padding counts no more
    if (channels > tile.head_dim - first) channels = tile.head_dim - first;
    if (tile.channel_axis) {
      decode_by_channel<Codes>(tile, strip, first, channels, params, keys);
      continue;
    }
    for (int c = 0; c < channels; ++c) {
      const int group = (first + c) / tile.group;
      if (group != loaded) params.load(group, groups, tile.tokens);
      loaded = group;
      decode_column<Codes, const float*>(strip, tile.tokens, c, params.scale, params.min,
                                         tile.tokens, keys + int64_t{first + c} * tile.tokens);
    }
  }
}

}  // namespace

void fast_keys(const PackedTile& tile, float* keys) {
  with_codes(tile.format.code, [&](auto codes) { keys_of<decltype(codes)>(tile, keys); });
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
