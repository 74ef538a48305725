// The part of a key that no cache need hold: RoPE of the key projection's bias, which depends on
// the position alone. K = RoPE(W x, p) + RoPE(b, p); pages hold codes of the first term, and the
// second is added to a tile after decoding, in fp32, so q·K is what it would be without codes.
#pragma once

#include <cstdint>

namespace kvsweep::cache {

// Of one KV head. Pointers live as long as the queries that carry them.
struct KeyBias {
  const float* bias = nullptr;  // [head_dim], before RoPE; nullptr: keys are whole
  int rotary_channels = 0;  // the first channels, in pairs (i, i + rotary_channels / 2); 0: none
  // By position in the sequence: rotary_channels / 2 cosines, then as many sines. Filled up to the
  // newest token.
  const float* const* angles = nullptr;
};

// Tokens of a key tile, transposed [head_dim][tile_tokens].
struct KeyTile {
  float* data = nullptr;
  int head_dim = 0;
  int tile_tokens = 0;
  int64_t first = 0;  // position of column 0
  int count = 0;      // columns to change
};

// rows [count][head_dim] = RoPE(bias, first + i). `rotated`: through the Hadamard transform, as
// codes of rotated keys need them.
void key_bias_rows(const KeyBias& bias, const KeyTile& tile, bool rotated, float* rows);

// tile[d][i] += rows[i][d]. One rounding per element, whoever calls: no result depends on how
// tokens came.
void add_rows(const float* rows, const KeyTile& tile);

}  // namespace kvsweep::cache
