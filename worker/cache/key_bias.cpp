#include "worker/cache/key_bias.hpp"

#include <algorithm>

#include "worker/codec/hadamard.hpp"

namespace kvsweep::cache {
namespace {

void rotate_row(const KeyBias& bias, const float* angles, float* row) {
  const int half = bias.rotary_channels / 2;
  const float* cosines = angles;
  const float* sines = angles + half;
  for (int i = 0; i < half; ++i) {
    row[i] = bias.bias[i] * cosines[i] - bias.bias[half + i] * sines[i];
    row[half + i] = bias.bias[half + i] * cosines[i] + bias.bias[i] * sines[i];
  }
}

}  // namespace

void key_bias_rows(const KeyBias& bias, const KeyTile& tile, bool rotated, float* rows) {
  for (int i = 0; i < tile.count; ++i) {
    float* row = rows + int64_t{i} * tile.head_dim;
    std::copy(bias.bias + bias.rotary_channels, bias.bias + tile.head_dim,
              row + bias.rotary_channels);
    if (bias.rotary_channels > 0) rotate_row(bias, bias.angles[tile.first + i], row);
  }
  if (rotated) codec::hadamard(rows, tile.count, tile.head_dim);
}

void add_rows(const float* rows, const KeyTile& tile) {
  for (int d = 0; d < tile.head_dim; ++d) {
    float* to = tile.data + int64_t{d} * tile.tile_tokens;
    for (int i = 0; i < tile.count; ++i) to[i] += rows[int64_t{i} * tile.head_dim + d];
  }
}

}  // namespace kvsweep::cache
