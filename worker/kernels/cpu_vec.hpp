// Vectors of the instruction set's width, for the files that compute attention.
#pragma once

#include "worker/kernels/cpu_isa.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef int32_t VecInt __attribute__((vector_size(kLanes * 4)));
typedef uint32_t VecWord __attribute__((vector_size(kLanes * 4)));
typedef float Unaligned __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint32_t UnalignedWord __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Vec load(const float* from) {
  return *reinterpret_cast<const Unaligned*>(from);
}
inline void store(float* to, const Vec& v) {
  *reinterpret_cast<Unaligned*>(to) = v;
}
inline VecWord load_words(const uint32_t* from) {
  return *reinterpret_cast<const UnalignedWord*>(from);
}
inline void store_words(uint32_t* to, const VecWord& v) {
  *reinterpret_cast<UnalignedWord*>(to) = v;
}

// Lane 0 first.
inline float sum_of(const Vec& v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
