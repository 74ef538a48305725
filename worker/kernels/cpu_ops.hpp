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

#include "worker/kernels/packed.hpp"

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

// Codes and parameters of one head of one page, as core/catalog/page_layout.hpp and packed.hpp
// describe. word11: the rows hold floor(tokens / 11) * 11 tokens, the tile's others become 0.
struct PackedTile {
  PackedFormat format;
  bool channel_axis = false;  // parameters per (group of tokens, channel), else (token, group)
  int group = 0;              // token axis: 1 .. head_dim, a multiple of 8 / bits
  int head_dim = 0;           // a multiple of 8 / bits
  int tokens = 0;
  const uint8_t* codes = nullptr;   // [tokens / row_tokens][row_bytes]
  const uint8_t* params = nullptr;  // [..][param_bytes], unaligned
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

// Attention over the codes of a page: `folds` says of which pages. `codes` is what code_keys or
// code_values made of the page, worth its while from kCodeTileRows rows on that share it, or
// nullptr: the page is then unpacked on the way. Results are the same bit for bit.
constexpr int kMaxFoldedDim = 256;
constexpr int kCodeTileRows = 24;
struct PackedScoreArgs {
  PackedTile tile;
  const float* codes = nullptr;  // [head_dim][tokens]
  const float* q = nullptr;      // [rows][head_dim]
  int rows = 0;
  float* scores = nullptr;  // [rows][tokens], of tokens never written: anything
};
struct PackedSumArgs {
  PackedTile tile;
  const float* codes = nullptr;  // [tokens][padded_dim]
  const float* p = nullptr;      // [rows][tokens]; no NaN
  int rows = 0;
  int first = 0;  // tokens first .. last - 1 count
  int last = 0;
  float* acc = nullptr;  // [rows][padded_dim], added to; the padding becomes anything
};

constexpr bool folds(const PackedTile& tile, bool values) {
  const CodeKind code = tile.format.code;
  const ParamKind params = tile.format.params;
  const bool integers = code == CodeKind::uint8 || code == CodeKind::uint4 ||
                        code == CodeKind::uint3 || code == CodeKind::uint2;
  const bool scaled = params == ParamKind::half_scale_min || params == ParamKind::half_scale;
  const bool grouped = tile.group % 32 == 0 || (!tile.channel_axis && tile.group >= tile.head_dim);
  return integers && scaled && grouped && tile.head_dim <= kMaxFoldedDim &&
         !(values && tile.channel_axis);
}

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

  // Codes as floats, of pages that fold. Padding of value rows becomes anything.
  void (*code_keys)(const PackedTile& tile, float* codes);
  void (*code_values)(const PackedTile& tile, float* codes);
  void (*score_packed)(const PackedScoreArgs& args);
  void (*accumulate_packed)(const PackedSumArgs& args);

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
