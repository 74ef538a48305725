// Attention over integer codes as they are: an element's value is code * scale + min, so
//     sum over d of q[d] * value[d] = sum over groups of scale * (sum of q * code) + min * sum of q
// and the multiply-adds over elements run on the codes alone. Per group of tokens and channel, q
// takes the scale instead (q * scale once per group). Values fold into the weights: p * scale.
//
// Codes come straight from the page for a few rows, or from a tile of codes as floats when many
// rows share the unpacking. Both are exact and their chains run in the same order, so a row's
// result is bit for bit the same: one sum from zero per page (and group), in the order of channels
// or tokens, then what the group's parameters make of it.
#pragma once

#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_ops.hpp"
#include "worker/kernels/cpu_vec.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {

// Rows that share one unpacking: their accumulators stay in registers, two vectors each.
constexpr int kFoldedRows = kLanes == 16 ? 8 : (kLanes == 8 ? 6 : 4);
constexpr int kFoldedGroup = 32;  // parameters change at multiples of it, or at the end of the head
constexpr int kMaxFoldedParams = kMaxFoldedDim / kFoldedGroup * kMaxTileTokens;

constexpr int rounded_up(int count, int multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

constexpr int code_bits(CodeKind kind) {
  switch (kind) {
    case CodeKind::uint4:
      return 4;
    case CodeKind::uint3:
      return 3;
    case CodeKind::uint2:
      return 2;
    default:
      return 8;
  }
}

// The low `Bits` bits of every lane as a number; what lies above them counts for nothing.
template <int Bits>
inline Vec code_value(const VecWord& word) {
  constexpr int kCodes = 1 << Bits;
  if constexpr (kLanes > 4 && kCodes <= kLanes) {
    Vec table;
    for (int i = 0; i < kLanes; ++i) table[i] = static_cast<float>(i % kCodes);
    return __builtin_shuffle(table, (VecInt)word);  // by the index modulo the lanes
  } else {
    return __builtin_convertvector((VecInt)(word & (kCodes - 1)), Vec);
  }
}

// The parameters of a page, group after group: of token-axis pages scale[g * tokens + t], of
// channel-axis pages scale[g * channels + d] with channels = head_dim rounded up to kFoldedGroup.
struct FoldedParams {
  alignas(64) float scale[kMaxFoldedParams];
  alignas(64) float min[kMaxFoldedParams];
  int groups = 0;
  int stride = 0;  // from one group to the next

  explicit FoldedParams(const PackedTile& tile);

 private:
  struct Run {
    int64_t first = 0;
    int64_t step = 0;
    int count = 0;
    int to = 0;
  };
  void load_scales(const PackedTile& tile, Run run);
  void load_by_channel(const PackedTile& tile);
  void load_by_token(const PackedTile& tile);
};

// Rows of `row_bytes` bytes, seen as little-endian words (the last filled up with zeros), to
// out[word][rows]. `rows` is a multiple of 16.
void transpose_words(const uint8_t* from, int64_t row_bytes, int rows, uint32_t* out);

// Calls use(Bits{}) with the number of bits, as a type.
template <int N>
struct Number {
  static constexpr int kValue = N;
};
template <typename Use>
inline void with_bits(CodeKind kind, const Use& use) {
  switch (kind) {
    case CodeKind::uint4:
      return use(Number<4>{});
    case CodeKind::uint3:
      return use(Number<3>{});
    case CodeKind::uint2:
      return use(Number<2>{});
    default:
      return use(Number<8>{});
  }
}

// Calls use(Rows{}) for 1 <= rows <= kFoldedRows.
template <typename Use>
inline void with_rows(int rows, const Use& use) {
  switch (rows) {
    case 1:
      return use(Number<1>{});
    case 2:
      return use(Number<2>{});
    case 3:
      return use(Number<3>{});
    case 4:
      return use(Number<4>{});
    default:
      break;
  }
  if constexpr (kFoldedRows > 4) {
    if (rows == 5) return use(Number<5>{});
    if (rows == 6) return use(Number<6>{});
  }
  if constexpr (kFoldedRows > 6) {
    if (rows == 7) return use(Number<7>{});
    return use(Number<8>{});
  }
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
