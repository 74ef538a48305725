// Pages of plain rows to fp32 tiles, and the choice of the loop for packed ones.
#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_tables.hpp"
#include "worker/kernels/cpu_tiles.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

constexpr int kStrip = 16;  // stored columns transposed at once: their tile fits on the stack

template <typename T>
void plain_keys_of(const PlainTile& tile, float* keys) {
  const T* rows = static_cast<const T*>(tile.rows);
  alignas(64) T strip[kStrip * kMaxTileTokens];
  for (int begin = 0; begin < tile.head_dim; begin += kStrip) {
    const int columns = tile.head_dim - begin < kStrip ? tile.head_dim - begin : kStrip;
    transpose<T>(rows + begin, tile.head_dim, tile.tokens, columns, strip);
    widen(tile.type, strip, int64_t{columns} * tile.tokens, keys + int64_t{begin} * tile.tokens);
  }
}

// The reference codecs' parameters and words go element by element.
bool is_reference(const PackedFormat& format) {
  return format.code == CodeKind::word11 || format.params == ParamKind::float_scale_zero ||
         format.params == ParamKind::bf16_scale_zero;
}

}  // namespace

void plain_keys(const PlainTile& tile, float* keys) {
  if (tile.type == Element::fp32) return plain_keys_of<uint32_t>(tile, keys);
  plain_keys_of<uint16_t>(tile, keys);
}

void plain_values(const PlainTile& tile, float* values) {
  const int64_t row_bytes = tile.head_dim * element_bytes(tile.type);
  for (int t = 0; t < tile.tokens; ++t) {
    widen(tile.type, static_cast<const uint8_t*>(tile.rows) + t * row_bytes, tile.head_dim,
          values + int64_t{t} * padded_dim(tile.head_dim));
  }
  clear_padding(tile.head_dim, tile.tokens, values);
}

void packed_keys(const PackedTile& tile, float* keys) {
  if (is_reference(tile.format)) return reference_tile(tile, {1, tile.tokens}, keys);
  fast_keys(tile, keys);
}

void packed_values(const PackedTile& tile, float* values) {
  if (is_reference(tile.format)) {
    reference_tile(tile, {padded_dim(tile.head_dim), 1}, values);
  } else {
    fast_values(tile, values);
  }
  clear_padding(tile.head_dim, tile.tokens, values);
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
