// Scores of queries against the codes of a page of keys. Compiled with -ffp-contract=fast.
#include "worker/kernels/cpu_chains.hpp"
#include "worker/kernels/cpu_folded.hpp"
#include "worker/kernels/cpu_tables.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

constexpr int kMaxWords = kMaxFoldedDim / 4;

// Codes that begin with a word and end with one: of one word, or of three for 3 bits.
template <int Bits>
constexpr int kUnitWords = Bits == 3 ? 3 : 1;
template <int Bits>
constexpr int kUnitCodes = 32 * kUnitWords<Bits> / Bits;

// Code `Index` of a unit of words that lie `stride` apart, over one vector of tokens.
template <int Bits, int Index>
inline Vec code_at(const uint32_t* words, int stride) {
  constexpr int kBit = Index * Bits;
  constexpr int kWord = kBit / 32;
  constexpr int kShift = kBit % 32;
  VecWord word = load_words(words + kWord * stride) >> kShift;
  if constexpr (kShift + Bits > 32)
    word |= load_words(words + (kWord + 1) * stride) << (32 - kShift);
  return code_value<Bits>(word);
}

// Calls use(Number<0>{}) .. use(Number<Count - 1>{}).
template <int Count, int Next = 0, typename Use>
inline __attribute__((always_inline)) void each(const Use& use) {
  if constexpr (Next < Count) {
    use(Number<Next>{});
    each<Count, Next + 1>(use);
  }
}

// out[r][0 .. Vecs lanes) = sum over channels of q[r][i] * code, from zero. `q` has whole units,
// zeros behind the channels.
struct CodeChains {
  const float* q = nullptr;  // row r at q + r * q_stride
  int q_stride = 0;
  const uint32_t* words = nullptr;  // of the first channel and token
  int tokens = 0;                   // from one word to the next
  int channels = 0;
  float* out = nullptr;  // row r at out + r * tokens
};

template <int Bits, int Rows, int Vecs>
inline __attribute__((always_inline)) void code_chains(const CodeChains& c) {
  Vec acc[Rows][Vecs] = {};
  const uint32_t* words = c.words;
  for (int i = 0; i < c.channels; i += kUnitCodes<Bits>) {
    const float* q = c.q + i;
    each<kUnitCodes<Bits>>([&](auto index) __attribute__((always_inline)) {
      constexpr int kIndex = decltype(index)::kValue;
      Vec code[Vecs];
#pragma GCC unroll 4
      for (int v = 0; v < Vecs; ++v) {
        code[v] = code_at<Bits, kIndex>(words + v * kLanes, c.tokens);
      }
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const float x = q[r * c.q_stride + kIndex];
#pragma GCC unroll 4
        for (int v = 0; v < Vecs; ++v) acc[r][v] += x * code[v];
      }
    });
    words += kUnitWords<Bits> * c.tokens;
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vecs; ++v) store(c.out + r * c.tokens + v * kLanes, acc[r][v]);
  }
}

// Vectors of tokens side by side, out of those that a run of 32 tokens has.
constexpr int vecs_for(int rows) {
  if (kLanes == 16) return 2;
  return rows <= 3 ? 4 : (rows <= 6 && kLanes == 8 ? 2 : 1);
}

template <int Bits, int Rows>
void code_chains_of(CodeChains c, int width) {
  constexpr int kVecs = vecs_for(Rows);
  for (int done = 0; done < width; done += kVecs * kLanes) {
    code_chains<Bits, Rows, kVecs>(c);
    c.words += kVecs * kLanes;
    c.out += kVecs * kLanes;
  }
}

template <int Bits>
struct Scorer {
  const PackedScoreArgs& a;
  const PackedTile& tile;
  const FoldedParams& params;
  int channels;  // of a row of q: head_dim rounded up to whole units
  alignas(64) uint32_t words[kMaxWords * kMaxTileTokens];
  alignas(64) float q[kFoldedRows * kMaxFoldedDim];
  alignas(64) float sums[kFoldedRows * kMaxTileTokens];

  Scorer(const PackedScoreArgs& args, const FoldedParams& folded)
      : a(args),
        tile(args.tile),
        params(folded),
        channels(rounded_up(args.tile.head_dim, kFoldedGroup)) {
    if (a.codes == nullptr) {
      transpose_words(tile.codes, row_bytes(tile.format.code, tile.head_dim), tile.tokens, words);
    }
  }

  // sums[r][first_token ..] = q * codes over channels first .. first + count - 1.
  void sum(int rows, int first, int count, int first_token, int width) {
    if (a.codes != nullptr) {
      const Chains c{q + first,   channels, a.codes + int64_t{first} * tile.tokens + first_token,
                     tile.tokens, count,    sums + first_token,
                     tile.tokens};
      return chains_of_all<false>(c, rows, width);
    }
    const int word = first / kUnitCodes<Bits> * kUnitWords<Bits>;
    const CodeChains c{q + first,   channels, words + word * tile.tokens + first_token,
                       tile.tokens, count,    sums + first_token};
    with_rows(rows, [&](auto n) { code_chains_of<Bits, decltype(n)::kValue>(c, width); });
  }

  void load_rows(const float* from, int rows) {
    for (int r = 0; r < rows; ++r) {
      float* to = q + r * channels;
      __builtin_memcpy(to, from + int64_t{r} * tile.head_dim,
                       static_cast<size_t>(tile.head_dim) * sizeof(float));
      for (int d = tile.head_dim; d < channels; ++d) to[d] = 0;
    }
  }

  void by_token(int rows, float* scores) {
    for (int g = 0; g < params.groups; ++g) {
      const int first = g * tile.group;
      const int count = tile.head_dim - first < tile.group ? tile.head_dim - first : tile.group;
      sum(rows, first, count, 0, tile.tokens);
      const float* scale = params.scale + g * params.stride;
      const float* min = params.min + g * params.stride;
      for (int r = 0; r < rows; ++r) {
        Vec lanes = {};
        for (int d = first; d < first + rounded_up(count, kFoldedGroup); d += kLanes) {
          lanes += load(q + r * channels + d);
        }
        const float total = sum_of(lanes);
        float* to = scores + int64_t{r} * tile.tokens;
        for (int j = 0; j < tile.tokens; j += kLanes) {
          const Vec before = g == 0 ? Vec{} : load(to + j);
          const Vec offset = before + total * load(min + j);
          store(to + j, offset + load(sums + r * tile.tokens + j) * load(scale + j));
        }
      }
    }
  }

  void by_channel(const float* rows_of_q, int rows, float* scores) {
    for (int g = 0; g < params.groups; ++g) {
      const float* scale = params.scale + g * params.stride;
      const float* min = params.min + g * params.stride;
      float offset[kFoldedRows];
      load_rows(rows_of_q, rows);
      for (int r = 0; r < rows; ++r) {
        Vec lanes = {};
        float* x = q + r * channels;
        for (int d = 0; d < channels; d += kLanes) {
          const Vec row = load(x + d);
          lanes += row * load(min + d);
          store(x + d, row * load(scale + d));
        }
        offset[r] = sum_of(lanes);
      }
      const int begin = g * tile.group;
      sum(rows, 0, tile.head_dim, begin, tile.group);
      for (int r = 0; r < rows; ++r) {
        for (int j = begin; j < begin + tile.group; j += kLanes) {
          store(scores + int64_t{r} * tile.tokens + j,
                load(sums + r * tile.tokens + j) + offset[r]);
        }
      }
    }
  }

  void run() {
    for (int done = 0; done < a.rows; done += kFoldedRows) {
      const int rows = a.rows - done < kFoldedRows ? a.rows - done : kFoldedRows;
      const float* from = a.q + int64_t{done} * tile.head_dim;
      float* scores = a.scores + int64_t{done} * tile.tokens;
      if (tile.channel_axis) {
        by_channel(from, rows, scores);
      } else {
        load_rows(from, rows);
        by_token(rows, scores);
      }
    }
  }
};

template <int Bits>
void code_keys_of(const PackedTile& tile, float* codes) {
  alignas(64) uint32_t words[kMaxWords * kMaxTileTokens];
  transpose_words(tile.codes, row_bytes(tile.format.code, tile.head_dim), tile.tokens, words);
  for (int d = 0; d < tile.head_dim; d += kUnitCodes<Bits>) {
    const uint32_t* unit = words + d / kUnitCodes<Bits> * kUnitWords<Bits> * tile.tokens;
    each<kUnitCodes<Bits>>([&](auto index) {
      constexpr int kIndex = decltype(index)::kValue;
      if (d + kIndex >= tile.head_dim) return;
      float* out = codes + int64_t{d + kIndex} * tile.tokens;
      for (int j = 0; j < tile.tokens; j += kLanes) {
        store(out + j, code_at<Bits, kIndex>(unit + j, tile.tokens));
      }
    });
  }
}

}  // namespace

void code_keys(const PackedTile& tile, float* codes) {
  with_bits(tile.format.code,
            [&](auto bits) { code_keys_of<decltype(bits)::kValue>(tile, codes); });
}

void score_packed(const PackedScoreArgs& args) {
  const FoldedParams params(args.tile);
  with_bits(args.tile.format.code, [&](auto bits) {
    Scorer<decltype(bits)::kValue> scorer(args, params);
    scorer.run();
  });
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
