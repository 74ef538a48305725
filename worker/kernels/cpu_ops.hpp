// The inner loops of the packed cache on the CPU: widen or decode one page of one head into an
// fp32 tile, and one step of attention over such a tile. Pointers and shapes only.
//
// Every function is compiled once per instruction set and chosen at run time, so one binary serves
// any x86-64 (and, as `baseline`, any other machine). Within one instruction set the result for a
// row depends on that row's inputs alone: never on how many rows a call handles, on thread count
// or on what lies in columns the row does not see. Across instruction sets decoded tiles are
// equal bit for bit; scores and sums differ in the last bits (fused multiply-add, lane count).
//
// A tile is page-sized: keys transposed [head_dim][tokens], so that scores vectorise over tokens;
// values [tokens][padded_dim(head_dim)], so that sums vectorise over channels.
#pragma once

#include <cstdint>

namespace kvsweep::kernels {

constexpr int kTileMultiple = 64;    // tokens of a tile: a multiple of this,
constexpr int kMaxTileTokens = 128;  // at most this

// Floats from one row of a value tile, or of an accumulator, to the next.
constexpr int padded_dim(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

enum class Element : uint8_t { fp32, fp16, bf16 };
constexpr int64_t element_bytes(Element type) {
  return type == Element::fp32 ? 4 : 2;
}

// Plain rows [tokens][head_dim] of one head.
struct PlainTile {
  Element type = Element::fp32;
  const void* rows = nullptr;
  int head_dim = 0;
  int tokens = 0;
};

// Codes and parameters of one head of one page, as core/catalog/page_layout.hpp describes.
struct PackedTile {
  int bits = 0;               // 8, 4, 2
  bool channel_axis = false;  // parameters per (group of tokens, channel), else (token, group)
  int group = 0;              // token axis: 1 .. head_dim, a multiple of 8 / bits
  int head_dim = 0;           // a multiple of 8 / bits
  int tokens = 0;
  const uint8_t* codes = nullptr;    // [tokens][head_dim * bits / 8]
  const uint16_t* params = nullptr;  // fp16 {scale, min}
};

// Scores of `rows` queries against a key tile: scores[r][j] = sum over d of q[r][d] * keys[d][j].
struct ScoreArgs {
  const float* q = nullptr;  // [rows][head_dim]
  int rows = 0;
  const float* keys = nullptr;  // [head_dim][tokens]
  int head_dim = 0;
  int tokens = 0;
  float* scores = nullptr;  // [rows][tokens]
};

// Online softmax (Milakov, Gimelshein, arXiv 1805.02867): maximum and sum so far of one row.
struct RowState {
  float max = -__builtin_inff();
  float sum = 0;
};

// Columns first .. last - 1 of a tile, at least one.
struct Columns {
  int first = 0;
  int last = 0;
};

// acc[r][d] += sum over first <= j < last of p[r][j] * values[j][d], j ascending.
struct AccumulateArgs {
  const float* p = nullptr;  // [rows][tokens]
  int rows = 0;
  int tokens = 0;
  const float* values = nullptr;  // [tokens][padded_dim]
  int head_dim = 0;
  int first = 0;
  int last = 0;
  float* acc = nullptr;  // [rows][padded_dim]
};

struct CpuOps {
  const char* name;

  // fp32 tiles from a page; columns or rows of tokens never written decode to what the page holds
  // (zeros in a fresh page). Padding of value rows becomes 0.
  void (*plain_keys)(const PlainTile& tile, float* keys);
  void (*plain_values)(const PlainTile& tile, float* values);
  void (*packed_keys)(const PackedTile& tile, float* keys);
  void (*packed_values)(const PackedTile& tile, float* values);

  // Elementwise conversions, to nearest even. `narrow` returns false when a result is not finite
  // (input not finite or beyond the type's range); all results are stored either way.
  void (*widen)(Element type, const void* from, int64_t count, float* to);
  bool (*narrow)(Element type, const float* from, int64_t count, void* to);

  void (*score)(const ScoreArgs& args);
  // scores[i] = cap * tanh(scores[i] / cap) for i < count, cap > 0.
  void (*softcap)(float cap, int64_t count, float* scores);
  // Turns the scores of one row into weights exp(s - max) over its visible columns, zero elsewhere,
  // updates the state and returns the factor for what was accumulated before.
  float (*softmax)(float* scores, int tokens, Columns visible, RowState* state);
  void (*rescale)(float factor, int head_dim, float* acc);
  void (*accumulate)(const AccumulateArgs& args);
};

enum class Isa : uint8_t { baseline, avx2, avx512 };

// nullptr when this build or this processor lacks the instruction set.
const CpuOps* cpu_ops(Isa isa);

// The best available, or the one named by the environment variable KVSWEEP_ISA (baseline, avx2,
// avx512) when it is available: a cluster of unlike machines can agree on one. Fixed at first use.
const CpuOps& cpu_ops();

}  // namespace kvsweep::kernels
