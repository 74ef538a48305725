// kvsweep_bench_int3_layout: which of two packings of 32 three-bit codes in 12 bytes decodes
// faster, as CSV (docs/decisions/0004-int3.md).
//   stream   element i in bits 3i .. 3i+2 of 96
//   planes   element i in bits 2i, 2i+1 of 64 (low bits), then in bit i of 32 (high bit)
// Both are decoded to fp32 as code * scale + min, rows of 128 codes out of the first-level cache.
// GCC 12's own header initialises "undefined" vectors with themselves and warns about it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/must.hpp"

namespace kvsweep::bench {
namespace {

constexpr int kRow = 128;  // codes
constexpr int kRowBytes = kRow * 3 / 8;
constexpr int kRows = 128;  // 6 KiB of codes, decoded again and again into one row
constexpr float kScale = 0.25f;
constexpr float kMin = -1.5f;

#define KVSWEEP_AVX2 __attribute__((target("avx2")))
#define KVSWEEP_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

template <typename T>
inline T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

KVSWEEP_AVX2 void stream_avx2(const uint8_t* row, float* out) {
  const __m256i shifts = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);
  const __m256i mask = _mm256_set1_epi32(7);
  const __m256 scale = _mm256_set1_ps(kScale), min = _mm256_set1_ps(kMin);
  for (int i = 0; i < kRow; i += 8) {
    const __m256i word = _mm256_set1_epi32(load<int>(row + i * 3 / 8));
    const __m256i code = _mm256_and_si256(_mm256_srlv_epi32(word, shifts), mask);
    _mm256_storeu_ps(out + i, _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(code), scale), min));
  }
}

KVSWEEP_AVX2 void planes_avx2(const uint8_t* row, float* out) {
  const __m256i low_shifts = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
  const __m256i high_shifts = _mm256_setr_epi32(2, 1, 0, -1, -2, -3, -4, -5);
  const __m256i right = _mm256_sub_epi32(_mm256_setzero_si256(), high_shifts);
  const __m256 scale = _mm256_set1_ps(kScale), min = _mm256_set1_ps(kMin);
  for (int i = 0; i < kRow; i += 8) {
    const uint8_t* chunk = row + i / 32 * 12;
    const int at = i % 32;
    const __m256i low = _mm256_and_si256(
        _mm256_srlv_epi32(_mm256_set1_epi32(load<uint16_t>(chunk + at / 4)), low_shifts),
        _mm256_set1_epi32(3));
    // A shift count that is negative as a signed number shifts everything out.
    const __m256i byte = _mm256_set1_epi32(chunk[8 + at / 8]);
    const __m256i high = _mm256_and_si256(
        _mm256_or_si256(_mm256_sllv_epi32(byte, high_shifts), _mm256_srlv_epi32(byte, right)),
        _mm256_set1_epi32(4));
    const __m256 code = _mm256_cvtepi32_ps(_mm256_or_si256(low, high));
    _mm256_storeu_ps(out + i, _mm256_add_ps(_mm256_mul_ps(code, scale), min));
  }
}

KVSWEEP_AVX512 void stream_avx512(const uint8_t* row, float* out) {
  alignas(64) int32_t bytes[16], counts[16];
  for (int j = 0; j < 16; ++j) {
    const int first = 3 * j / 8;
    bytes[j] = first | std::min(first + 1, 5) << 8 | 0x80800000;
    counts[j] = 3 * j % 8;
  }
  const __m512i index = _mm512_load_si512(bytes), shifts = _mm512_load_si512(counts);
  const __m512i mask = _mm512_set1_epi32(7);
  const __m512 scale = _mm512_set1_ps(kScale), min = _mm512_set1_ps(kMin);
  for (int i = 0; i < kRow; i += 16) {
    const __m512i six = _mm512_set1_epi64(load<int64_t>(row + i * 3 / 8));  // two bytes too many
    const __m512i code =
        _mm512_and_si512(_mm512_srlv_epi32(_mm512_shuffle_epi8(six, index), shifts), mask);
    _mm512_storeu_ps(out + i, _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(code), scale), min));
  }
}

KVSWEEP_AVX512 void planes_avx512(const uint8_t* row, float* out) {
  alignas(64) int32_t counts[16];
  for (int j = 0; j < 16; ++j) counts[j] = 2 * j;
  const __m512i shifts = _mm512_load_si512(counts);
  const __m512i four = _mm512_set1_epi32(4);
  const __m512 scale = _mm512_set1_ps(kScale), min = _mm512_set1_ps(kMin);
  for (int i = 0; i < kRow; i += 16) {
    const uint8_t* chunk = row + i / 32 * 12;
    const int at = i % 32;
    const __m512i low =
        _mm512_and_si512(_mm512_srlv_epi32(_mm512_set1_epi32(load<int>(chunk + at / 4)), shifts),
                         _mm512_set1_epi32(3));
    const __mmask16 high = load<uint16_t>(chunk + 8 + at / 8);
    const __m512 code = _mm512_cvtepi32_ps(_mm512_mask_or_epi32(low, high, low, four));
    _mm512_storeu_ps(out + i, _mm512_add_ps(_mm512_mul_ps(code, scale), min));
  }
}

// Keys: eight columns of codes of 64 tokens out of their three columns of bytes, as a transposed
// tile has them. `bytes` [3][64] for the stream; for the planes [3][64] too: low, low, high.
constexpr int kTokens = 64;

template <bool kPlanes>
inline __attribute__((always_inline)) void columns(const uint8_t* bytes, float* out) {
  const uint8_t* b0 = bytes;
  const uint8_t* b1 = bytes + kTokens;
  const uint8_t* b2 = bytes + 2 * kTokens;
#pragma GCC unroll 8
  for (int c = 0; c < 8; ++c) {
    for (int t = 0; t < kTokens; ++t) {
      int code;
      if (kPlanes) {
        code = ((c < 4 ? b0 : b1)[t] >> (2 * (c % 4)) & 3) | (b2[t] >> c & 1) << 2;
      } else if (c == 2) {
        code = (b0[t] >> 6 | b1[t] << 2) & 7;
      } else if (c == 5) {
        code = (b1[t] >> 7 | b2[t] << 1) & 7;
      } else {
        code = (c < 2 ? b0 : c < 5 ? b1 : b2)[t] >> (3 * c % 8) & 7;
      }
      out[c * kTokens + t] = static_cast<float>(code) * kScale + kMin;
    }
  }
}

#define KVSWEEP_FAST __attribute__((optimize("O3", "fp-contract=off")))
KVSWEEP_AVX2 KVSWEEP_FAST void key_stream_avx2(const uint8_t* bytes, float* out) {
  columns<false>(bytes, out);
}
KVSWEEP_AVX2 KVSWEEP_FAST void key_planes_avx2(const uint8_t* bytes, float* out) {
  columns<true>(bytes, out);
}
KVSWEEP_AVX512 KVSWEEP_FAST void key_stream_avx512(const uint8_t* bytes, float* out) {
  columns<false>(bytes, out);
}
KVSWEEP_AVX512 KVSWEEP_FAST void key_planes_avx512(const uint8_t* bytes, float* out) {
  columns<true>(bytes, out);
}

using Decode = void (*)(const uint8_t*, float*);

void pack(const std::vector<uint8_t>& codes, bool planes, uint8_t* row) {
  std::memset(row, 0, kRowBytes);
  for (int i = 0; i < kRow; ++i) {
    const unsigned code = codes[i];
    if (planes) {
      uint8_t* chunk = row + i / 32 * 12;
      chunk[i % 32 / 4] |= static_cast<uint8_t>((code & 3) << (i % 4 * 2));
      chunk[8 + i % 32 / 8] |= static_cast<uint8_t>((code >> 2) << (i % 8));
    } else {
      for (int b = 0; b < 3; ++b) {
        row[(3 * i + b) / 8] |= static_cast<uint8_t>((code >> b & 1) << ((3 * i + b) % 8));
      }
    }
  }
}

struct Input {
  std::vector<std::vector<uint8_t>> codes;  // [kRows][kRow]
  std::vector<uint8_t> rows[2];             // packed, [kRows][kRowBytes] and 8 spare bytes
};

void check_rows(const Input& input, bool planes, Decode decode, const char* name) {
  float out[kRow];
  for (int r = 0; r < kRows; ++r) {
    decode(input.rows[planes].data() + r * kRowBytes, out);
    for (int i = 0; i < kRow; ++i) {
      if (out[i] != static_cast<float>(input.codes[r][i]) * kScale + kMin) {
        fail(std::string(name) + " decodes element " + std::to_string(i) + " wrongly");
      }
    }
  }
}

// Nanoseconds per code, the best of many repetitions.
double measure(Decode decode, const uint8_t* from, int stride, int calls, int codes_per_call) {
  alignas(64) static float out[8 * kTokens];
  double best = 1e30;
  for (int repetition = 0; repetition < 2000; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      decode(from + i * stride, out);
      asm volatile("" ::"r"(out) : "memory");
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / (double(calls) * codes_per_call));
  }
  return best;
}

void report(const char* isa, const Input& input, Decode row_stream, Decode row_planes,
            Decode key_stream, Decode key_planes) {
  check_rows(input, false, row_stream, "stream");
  check_rows(input, true, row_planes, "planes");
  const Decode rows[] = {row_stream, row_planes};
  const Decode keys[] = {key_stream, key_planes};
  for (int planes = 0; planes < 2; ++planes) {
    const uint8_t* from = input.rows[planes].data();
    std::printf(
        "%s,%s,%.4f,%.4f\n", isa, planes ? "planes" : "stream",
        measure(rows[planes], from, kRowBytes, kRows, kRow),
        measure(keys[planes], from, 3 * kTokens, kRows * kRowBytes / (3 * kTokens), 8 * kTokens));
  }
}

int run() {
  Input input;
  std::mt19937 rng(3);
  for (int r = 0; r < kRows; ++r) {
    std::vector<uint8_t> codes(kRow);
    for (uint8_t& c : codes) c = rng() % 8;
    input.codes.push_back(codes);
  }
  for (int planes = 0; planes < 2; ++planes) {
    input.rows[planes].resize(kRows * kRowBytes + 8);
    for (int r = 0; r < kRows; ++r) {
      pack(input.codes[r], planes == 1, input.rows[planes].data() + r * kRowBytes);
    }
  }
  std::printf("# %s; ns per code, best of 2000\nisa,layout,rows_ns,columns_ns\n",
              processor().c_str());
  if (__builtin_cpu_supports("avx2")) {
    report("avx2", input, stream_avx2, planes_avx2, key_stream_avx2, key_planes_avx2);
  }
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    report("avx512", input, stream_avx512, planes_avx512, key_stream_avx512, key_planes_avx512);
  }
  return 0;
}

}  // namespace
}  // namespace kvsweep::bench

int main() {
  return kvsweep::bench::run();
}
