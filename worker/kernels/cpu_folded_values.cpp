// Weighted sums over the codes of a page of values, per token. Compiled with -ffp-contract=fast.
#include "worker/kernels/cpu_chains.hpp"
#include "worker/kernels/cpu_folded.hpp"
#include "worker/kernels/cpu_tables.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

constexpr int kChunk = 2 * kLanes;  // channels that are unpacked together, into two vectors
template <int Bits>
constexpr int kChunkBytes = kChunk* Bits / 8;
constexpr int kMaxChannels = kMaxFoldedDim + kChunk;

// kLanes bytes, one per lane.
inline VecWord widen_bytes(const uint8_t* from) {
#if defined(__AVX512F__)
  return (VecWord)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif defined(__AVX2__)
  return (VecWord)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#else
  VecWord word;
  for (int i = 0; i < kLanes; ++i) word[i] = from[i];
  return word;
#endif
}

// kLanes / 2 bytes, twice.
inline VecWord widen_bytes_twice(const uint8_t* from) {
#if defined(__AVX512F__)
  long long bytes;
  __builtin_memcpy(&bytes, from, sizeof(bytes));
  return (VecWord)_mm512_cvtepu8_epi32(_mm_set1_epi64x(bytes));
#elif defined(__AVX2__)
  int bytes;
  __builtin_memcpy(&bytes, from, sizeof(bytes));
  return (VecWord)_mm256_cvtepu8_epi32(_mm_set1_epi32(bytes));
#else
  VecWord word;
  for (int i = 0; i < kLanes; ++i) word[i] = from[i % (kLanes / 2)];
  return word;
#endif
}

inline uint32_t word_at(const uint8_t* from) {
  uint32_t word;
  __builtin_memcpy(&word, from, sizeof(word));
  return word;
}

// Lane i: 3 * (i % 8) + more.
inline VecWord threes(uint32_t more) {
  VecWord shifts;
  for (int i = 0; i < kLanes; ++i) shifts[i] = 3 * static_cast<uint32_t>(i % 8) + more;
  return shifts;
}

// A chunk's codes in two vectors, in the order that costs least; `natural` puts them right.
template <int Bits>
struct Unpacked {
  Vec low;
  Vec high;

  explicit Unpacked(const uint8_t* from) {
    if constexpr (Bits == 8) {
      low = code_value<8>(widen_bytes(from));
      high = code_value<8>(widen_bytes(from + kLanes));
    } else if constexpr (Bits == 4) {  // even channels, odd channels
      const VecWord word = widen_bytes(from);
      low = code_value<4>(word);
      high = code_value<4>(word >> 4);
    } else if constexpr (Bits == 2) {  // codes 0 of all bytes, codes 1; codes 2, codes 3
      const VecWord word = widen_bytes_twice(from);
      VecWord shift;
      for (int i = 0; i < kLanes; ++i) shift[i] = i < kLanes / 2 ? 0 : 2;
      low = code_value<2>(word >> shift);
      high = code_value<2>(word >> (shift + 4));
    } else {
      three_bits(from);
    }
  }

  // Eight codes are 24 bits; no load reaches beyond the chunk.
  void three_bits(const uint8_t* from) {
    if constexpr (kLanes == 16) {
      VecWord upper;
      for (int i = 0; i < kLanes; ++i) upper[i] = i < 8 ? 0 : ~0u;
      const auto join = [&](uint32_t a, uint32_t b) {
        return upper != 0 ? VecWord{} + b : VecWord{} + a;
      };
      VecWord last = threes(0);
      for (int i = 8; i < kLanes; ++i) last[i] += 8;
      low = code_value<3>(join(word_at(from), word_at(from + 3)) >> threes(0));
      high = code_value<3>(join(word_at(from + 6), word_at(from + 8)) >> last);
    } else if constexpr (kLanes == 8) {
      low = code_value<3>((VecWord{} + word_at(from)) >> threes(0));
      high = code_value<3>((VecWord{} + word_at(from + 2)) >> threes(8));
    } else {
      const uint32_t word = from[0] | from[1] << 8 | from[2] << 16;
      low = code_value<3>((VecWord{} + word) >> threes(0));
      high = code_value<3>((VecWord{} + word) >> threes(12));
    }
  }
};

// Where channel n of a chunk lies in the two vectors.
template <int Bits>
constexpr int lane_of(int n) {
  if (Bits == 4) return n % 2 * kLanes + n / 2;
  if (Bits == 2) return n % 4 / 2 * kLanes + n % 2 * (kLanes / 2) + n / 4;
  return n;
}

template <int Bits>
inline void natural(Vec* low, Vec* high) {
  if constexpr (Bits == 4 || Bits == 2) {
    VecInt first;
    VecInt second;
    for (int i = 0; i < kLanes; ++i) {
      first[i] = lane_of<Bits>(i);
      second[i] = lane_of<Bits>(kLanes + i);
    }
    const Vec a = *low;
    const Vec b = *high;
    *low = __builtin_shuffle(a, b, first);
    *high = __builtin_shuffle(a, b, second);
  }
}

// out[r][channel of the chunk] = sum over first <= t < last of p[r][t] * code, from zero.
struct CodeSums {
  const uint8_t* codes = nullptr;  // token t at codes + t * row_bytes
  int64_t row_bytes = 0;
  int first = 0;
  int last = 0;
  const float* p = nullptr;  // row r at p + r * kMaxTileTokens
  float* out = nullptr;      // row r at out + r * kMaxChannels
};

template <int Bits, int Rows>
void code_sums(const CodeSums& c) {
  Vec acc[Rows][2] = {};
  const uint8_t* codes = c.codes + c.first * c.row_bytes;
  for (int t = c.first; t < c.last; ++t, codes += c.row_bytes) {
    const Unpacked<Bits> code(codes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const float x = c.p[r * kMaxTileTokens + t];
      acc[r][0] += x * code.low;
      acc[r][1] += x * code.high;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    natural<Bits>(&acc[r][0], &acc[r][1]);
    store(c.out + r * kMaxChannels, acc[r][0]);
    store(c.out + r * kMaxChannels + kLanes, acc[r][1]);
  }
}

// The rows of a chunk that reaches beyond the head, whole: what lies behind a page's last row may
// belong to nobody.
template <int Bits>
struct Tail {
  uint8_t bytes[kMaxTileTokens * kChunkBytes<Bits>];

  Tail(const PackedTile& tile, int64_t row_bytes, int64_t begin) {
    for (int t = 0; t < tile.tokens; ++t) {
      uint8_t* to = bytes + t * kChunkBytes<Bits>;
      const uint8_t* from = tile.codes + t * row_bytes;
      for (int i = 0; i < kChunkBytes<Bits>; ++i) {
        to[i] = begin + i < row_bytes ? from[begin + i] : 0;
      }
    }
  }
};

template <int Bits>
struct Summer {
  const PackedSumArgs& a;
  const PackedTile& tile;
  const FoldedParams& params;
  int64_t row_bytes;
  int padded;
  alignas(64) float p[kFoldedRows * kMaxTileTokens];
  alignas(64) float sums[kFoldedRows * kMaxChannels];
  float offset[kFoldedRows];

  Summer(const PackedSumArgs& args, const FoldedParams& folded)
      : a(args),
        tile(args.tile),
        params(folded),
        row_bytes(kernels::row_bytes(args.tile.format.code, args.tile.head_dim)),
        padded(padded_dim(args.tile.head_dim)) {}

  // p * scale, and the sum of p * min. Both are zero outside first .. last - 1, where the page may
  // hold anything.
  void weigh(int group, const float* weights, int rows) {
    alignas(64) float scale[kMaxTileTokens];
    alignas(64) float min[kMaxTileTokens];
    for (int t = 0; t < tile.tokens; ++t) {
      const bool seen = t >= a.first && t < a.last;
      scale[t] = seen ? params.scale[group * params.stride + t] : 0;
      min[t] = seen ? params.min[group * params.stride + t] : 0;
    }
    for (int r = 0; r < rows; ++r) {
      Vec lanes = {};
      for (int t = 0; t < tile.tokens; t += kLanes) {
        const Vec weight = load(weights + int64_t{r} * tile.tokens + t);
        store(p + r * kMaxTileTokens + t, weight * load(scale + t));
        lanes += weight * load(min + t);
      }
      offset[r] = sum_of(lanes);
    }
  }

  void sum(int rows, int begin, int end) {
    if (a.codes != nullptr) {
      const Chains c{p + a.first, kMaxTileTokens,   a.codes + int64_t{a.first} * padded + begin,
                     padded,      a.last - a.first, sums + begin,
                     kMaxChannels};
      return chains_of_all<false>(c, rows, rounded_up(end - begin, 16));
    }
    for (int d = begin; d < end; d += kChunk) {
      CodeSums c{tile.codes + int64_t{d} * Bits / 8, row_bytes, a.first, a.last, p, sums + d};
      if (d + kChunk <= tile.head_dim) {
        with_rows(rows, [&](auto n) { code_sums<Bits, decltype(n)::kValue>(c); });
        continue;
      }
      const Tail<Bits> tail(tile, row_bytes, int64_t{d} * Bits / 8);
      c.codes = tail.bytes;
      c.row_bytes = kChunkBytes<Bits>;
      with_rows(rows, [&](auto n) { code_sums<Bits, decltype(n)::kValue>(c); });
    }
  }

  void run() {
    for (int done = 0; done < a.rows; done += kFoldedRows) {
      const int rows = a.rows - done < kFoldedRows ? a.rows - done : kFoldedRows;
      for (int g = 0; g < params.groups; ++g) {
        const int begin = g * tile.group;
        const int end = begin + tile.group < tile.head_dim ? begin + tile.group : tile.head_dim;
        weigh(g, a.p + int64_t{done} * tile.tokens, rows);
        sum(rows, begin, end);
        for (int r = 0; r < rows; ++r) {
          float* acc = a.acc + int64_t{done + r} * padded;
          for (int d = begin; d < rounded_up(end, 16); d += kLanes) {
            store(acc + d, load(acc + d) + (load(sums + r * kMaxChannels + d) + offset[r]));
          }
        }
      }
    }
  }
};

template <int Bits>
void code_values_of(const PackedTile& tile, float* codes) {
  const int64_t row_bytes = kernels::row_bytes(tile.format.code, tile.head_dim);
  const int padded = padded_dim(tile.head_dim);
  const auto put = [&](const uint8_t* from, int64_t stride, int d) {
    for (int t = 0; t < tile.tokens; ++t) {
      Unpacked<Bits> code(from + t * stride);
      natural<Bits>(&code.low, &code.high);
      float* to = codes + int64_t{t} * padded + d;
      store(to, code.low);
      if (d + kLanes < padded) store(to + kLanes, code.high);
    }
  };
  for (int d = 0; d < tile.head_dim; d += kChunk) {
    const int64_t begin = int64_t{d} * Bits / 8;
    if (d + kChunk <= tile.head_dim) {
      put(tile.codes + begin, row_bytes, d);
    } else {
      const Tail<Bits> tail(tile, row_bytes, begin);
      put(tail.bytes, kChunkBytes<Bits>, d);
    }
  }
}

}  // namespace

void code_values(const PackedTile& tile, float* codes) {
  with_bits(tile.format.code,
            [&](auto bits) { code_values_of<decltype(bits)::kValue>(tile, codes); });
}

void accumulate_packed(const PackedSumArgs& args) {
  const FoldedParams params(args.tile);
  with_bits(args.tile.format.code, [&](auto bits) {
    Summer<decltype(bits)::kValue> summer(args, params);
    summer.run();
  });
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
