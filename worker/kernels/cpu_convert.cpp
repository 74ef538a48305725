// Bulk conversions between float and the 16-bit types. Written as branch-free integer code that
// compilers vectorise; F16C where the instruction set has it. Compiled with -ffp-contract=off.
#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_tables.hpp"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace kvsweep::kernels::KVSWEEP_ISA {
namespace {

inline uint32_t bits_of(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
inline float float_of(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// Normal numbers get their exponent rebiased; subnormals are built as 2^-14 + m * 2^-24 - 2^-14,
// which is exact.
inline float widen_half(uint16_t half) {
  const int32_t pattern = half;  // signed: SSE2 compares no unsigned lanes
  const int32_t magnitude = pattern & 0x7fff;
  const int32_t shifted = magnitude << 13;
  const float tiny = float_of(static_cast<uint32_t>(shifted) + 0x38800000u) - 0x1p-14f;
  int32_t bits = magnitude < 0x0400 ? static_cast<int32_t>(bits_of(tiny)) : shifted + 0x38000000;
  bits = magnitude >= 0x7c00 ? shifted | 0x7f800000 : bits;
  return float_of(static_cast<uint32_t>(bits) | (static_cast<uint32_t>(half & 0x8000u) << 16));
}

inline uint16_t narrow_half(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t rounded = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const uint32_t tiny = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t half = magnitude < 0x38800000u ? tiny : rounded;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
}

inline uint16_t narrow_bf16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

bool narrow_to_half(const float* from, int64_t count, uint16_t* to) {
  uint32_t special = 0;
  int64_t i = 0;
#if defined(__F16C__)
  const __m256i exponent = _mm256_set1_epi16(0x7c00);
  __m256i found = _mm256_setzero_si256();
  for (; i + 16 <= count; i += 16) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT;
    const __m128i low = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), kNearest);
    const __m128i high = _mm256_cvtps_ph(_mm256_loadu_ps(from + i + 8), kNearest);
    const __m256i both = _mm256_set_m128i(high, low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), both);
    found = _mm256_or_si256(found, _mm256_cmpeq_epi16(_mm256_and_si256(both, exponent), exponent));
  }
  special = static_cast<uint32_t>(_mm256_movemask_epi8(found));
#endif
  for (; i < count; ++i) {
    to[i] = narrow_half(from[i]);
    special |= (to[i] & 0x7c00u) == 0x7c00u;
  }
  return special == 0;
}

bool narrow_to_bf16(const float* from, int64_t count, uint16_t* to) {
  uint32_t special = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = narrow_bf16(from[i]);
    to[i] = bits;
    special |= (bits & 0x7f80u) == 0x7f80u;
  }
  return special == 0;
}

bool copy_floats(const float* from, int64_t count, float* to) {
  uint32_t special = 0;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = from[i];
    special |= (bits_of(from[i]) & 0x7f800000u) == 0x7f800000u;
  }
  return special == 0;
}

}  // namespace

void widen_halves(const uint16_t* from, int64_t count, float* to) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
#endif
  for (; i < count; ++i) to[i] = widen_half(from[i]);
}

void widen(Element type, const void* from, int64_t count, float* to) {
  switch (type) {
    case Element::fp32:
      __builtin_memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    case Element::fp16:
      widen_halves(static_cast<const uint16_t*>(from), count, to);
      return;
    case Element::bf16: {
      const auto* bf16 = static_cast<const uint16_t*>(from);
      for (int64_t i = 0; i < count; ++i) to[i] = float_of(static_cast<uint32_t>(bf16[i]) << 16);
      return;
    }
  }
}

bool narrow(Element type, const float* from, int64_t count, void* to) {
  switch (type) {
    case Element::fp16:
      return narrow_to_half(from, count, static_cast<uint16_t*>(to));
    case Element::bf16:
      return narrow_to_bf16(from, count, static_cast<uint16_t*>(to));
    case Element::fp32:
      break;
  }
  return copy_floats(from, count, static_cast<float*>(to));
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
