// What folded attention needs before its loops: words of codes by token, parameters by group.
#include "worker/kernels/cpu_folded.hpp"

#include "worker/kernels/cpu_tables.hpp"
#include "worker/kernels/cpu_tiles.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

constexpr int kWordBytes = 4;
constexpr int kBlock = 4;  // words transposed at once: 16 bytes of a row

// Words `word` .. word + 3 of kLanes rows. A register holds 16 bytes of every fourth row, so that
// the transposition stays within its quarters.
#if defined(__AVX512F__)
inline __m512i every_fourth(const uint8_t* from, int64_t row_bytes) {
  const auto part = [&](int i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 4 * i * row_bytes));
  };
  __m512i rows = _mm512_castsi128_si512(part(0));
  rows = _mm512_inserti32x4(rows, part(1), 1);
  rows = _mm512_inserti32x4(rows, part(2), 2);
  return _mm512_inserti32x4(rows, part(3), 3);
}
inline void transpose_block(const uint8_t* from, int64_t row_bytes, int rows, uint32_t* out) {
  const __m512i a = every_fourth(from, row_bytes);
  const __m512i b = every_fourth(from + row_bytes, row_bytes);
  const __m512i c = every_fourth(from + 2 * row_bytes, row_bytes);
  const __m512i d = every_fourth(from + 3 * row_bytes, row_bytes);
  const __m512i ab_low = _mm512_unpacklo_epi32(a, b);
  const __m512i ab_high = _mm512_unpackhi_epi32(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi32(c, d);
  const __m512i cd_high = _mm512_unpackhi_epi32(c, d);
  _mm512_storeu_si512(out, _mm512_unpacklo_epi64(ab_low, cd_low));
  _mm512_storeu_si512(out + rows, _mm512_unpackhi_epi64(ab_low, cd_low));
  _mm512_storeu_si512(out + 2 * rows, _mm512_unpacklo_epi64(ab_high, cd_high));
  _mm512_storeu_si512(out + 3 * rows, _mm512_unpackhi_epi64(ab_high, cd_high));
}
#elif defined(__AVX2__)
inline __m256i every_fourth(const uint8_t* from, int64_t row_bytes) {
  const auto part = [&](int i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 4 * i * row_bytes));
  };
  return _mm256_inserti128_si256(_mm256_castsi128_si256(part(0)), part(1), 1);
}
inline void transpose_block(const uint8_t* from, int64_t row_bytes, int rows, uint32_t* out) {
  const __m256i a = every_fourth(from, row_bytes);
  const __m256i b = every_fourth(from + row_bytes, row_bytes);
  const __m256i c = every_fourth(from + 2 * row_bytes, row_bytes);
  const __m256i d = every_fourth(from + 3 * row_bytes, row_bytes);
  const __m256i ab_low = _mm256_unpacklo_epi32(a, b);
  const __m256i ab_high = _mm256_unpackhi_epi32(a, b);
  const __m256i cd_low = _mm256_unpacklo_epi32(c, d);
  const __m256i cd_high = _mm256_unpackhi_epi32(c, d);
  const auto put = [&](int word, const __m256i& v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + word * rows), v);
  };
  put(0, _mm256_unpacklo_epi64(ab_low, cd_low));
  put(1, _mm256_unpackhi_epi64(ab_low, cd_low));
  put(2, _mm256_unpacklo_epi64(ab_high, cd_high));
  put(3, _mm256_unpackhi_epi64(ab_high, cd_high));
}
#else
inline void transpose_block(const uint8_t* from, int64_t row_bytes, int rows, uint32_t* out) {
  Lanes<uint32_t>::Vector a[4];
  Lanes<uint32_t>::Vector b[4];
  for (int i = 0; i < 4; ++i) __builtin_memcpy(&a[i], from + i * row_bytes, kVectorBytes);
  interleave(a[0], a[2], &b[0], &b[1]);
  interleave(a[1], a[3], &b[2], &b[3]);
  interleave(b[0], b[2], &a[0], &a[1]);
  interleave(b[1], b[3], &a[2], &a[3]);
  for (int i = 0; i < 4; ++i) __builtin_memcpy(out + i * rows, &a[i], kVectorBytes);
}
#endif

void transpose_few(const uint8_t* from, int64_t row_bytes, int rows, uint32_t* out) {
  if (row_bytes % kWordBytes == 0) {
    for (int64_t begin = 0; begin < row_bytes; begin += kWordBytes, out += rows) {
      for (int r = 0; r < rows; ++r) {
        __builtin_memcpy(out + r, from + r * row_bytes + begin, kWordBytes);
      }
    }
    return;
  }
  for (int64_t begin = 0; begin < row_bytes; begin += kWordBytes, out += rows) {
    const int64_t left = row_bytes - begin < kWordBytes ? row_bytes - begin : kWordBytes;
    for (int r = 0; r < rows; ++r) {
      uint32_t word = 0;
      for (int64_t i = 0; i < left; ++i) {
        word |= uint32_t{from[r * row_bytes + begin + i]} << (8 * i);
      }
      out[r] = word;
    }
  }
}

// The halves in the low 16 bits of every lane, as floats.
inline Vec widen_low(const VecWord& word) {
#if defined(__AVX512F__)
  return (Vec)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)word));
#elif defined(__AVX2__)
  const __m256i low = (__m256i)(word & 0xffffu);
  const __m128i halves =
      _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  return (Vec)_mm256_cvtph_ps(halves);
#else
  uint16_t halves[kLanes];
  float wide[kLanes];
  for (int i = 0; i < kLanes; ++i) halves[i] = static_cast<uint16_t>(word[i]);
  widen_halves(halves, kLanes, wide);
  return load(wide);
#endif
}

// Pairs of halves: scale, min.
void split_pairs(const uint32_t* pairs, int count, float* scale, float* min) {
  for (int i = 0; i < count; i += kLanes) {
    const VecWord word = load_words(pairs + i);
    store(scale + i, widen_low(word));
    store(min + i, widen_low(word >> 16));
  }
}

}  // namespace

void transpose_words(const uint8_t* from, int64_t row_bytes, int rows, uint32_t* out) {
  const int words = static_cast<int>(row_bytes / kWordBytes);
  if (row_bytes % kWordBytes != 0 || words < kBlock) {
    return transpose_few(from, row_bytes, rows, out);
  }
  for (int next = 0; next < words; next += kBlock) {
    const int word = next + kBlock <= words ? next : words - kBlock;  // the last may overlap
    for (int r = 0; r < rows; r += kLanes) {
      transpose_block(from + r * row_bytes + word * kWordBytes, row_bytes, rows,
                      out + word * rows + r);
    }
  }
}

FoldedParams::FoldedParams(const PackedTile& tile) {
  if (tile.channel_axis) {
    load_by_channel(tile);
  } else {
    load_by_token(tile);
  }
}

// Symmetric codes have a scale alone: (code - middle) * scale. From the parameters `first`,
// `first + step` .. to the indices `to`, `to + 1` ..
void FoldedParams::load_scales(const PackedTile& tile, Run run) {
  const auto middle = static_cast<float>(1 << (code_bits(tile.format.code) - 1));
  for (int i = 0; i < run.count; ++i) {
    uint16_t half;
    __builtin_memcpy(&half, tile.params + (run.first + i * run.step) * 2, sizeof(half));
    widen_halves(&half, 1, scale + run.to + i);
    min[run.to + i] = -middle * scale[run.to + i];
  }
}

void FoldedParams::load_by_channel(const PackedTile& tile) {
  groups = tile.tokens / tile.group;
  stride = rounded_up(tile.head_dim, kFoldedGroup);
  alignas(64) uint32_t pairs[kMaxFoldedDim];
  for (int g = 0; g < groups; ++g) {
    const int64_t first = int64_t{g} * tile.head_dim;
    const int to = g * stride;
    if (tile.format.params == ParamKind::half_scale_min) {
      __builtin_memcpy(pairs, tile.params + first * kWordBytes,
                       static_cast<size_t>(tile.head_dim) * kWordBytes);
      for (int d = tile.head_dim; d < stride; ++d) pairs[d] = 0;
      split_pairs(pairs, stride, scale + to, min + to);
      continue;
    }
    load_scales(tile, {first, 1, tile.head_dim, to});
    for (int d = tile.head_dim; d < stride; ++d) scale[to + d] = min[to + d] = 0;
  }
}

void FoldedParams::load_by_token(const PackedTile& tile) {
  groups = (tile.head_dim + tile.group - 1) / tile.group;
  stride = tile.tokens;
  if (tile.format.params == ParamKind::half_scale_min) {
    alignas(64) uint32_t pairs[kMaxFoldedParams];
    transpose_words(tile.params, int64_t{groups} * kWordBytes, tile.tokens, pairs);
    split_pairs(pairs, groups * tile.tokens, scale, min);
    return;
  }
  for (int g = 0; g < groups; ++g) load_scales(tile, {g, groups, tile.tokens, g * stride});
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
