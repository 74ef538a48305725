// Shared by the files that turn pages into tiles. Keys need a transposition. It is done on the
// stored bytes, before they are widened: 16-byte vectors, log2(lanes) rounds of interleaving row i
// with row i + lanes/2 (a perfect shuffle, which repeated log2(lanes) times is the transposition).
// Example with 2 lanes: {a b} {c d} -> {a c} {b d}.
#pragma once

#include "worker/kernels/cpu_isa.hpp"
#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::kernels::KVSWEEP_ISA {

constexpr int kVectorBytes = 16;

template <typename T>
struct Lanes {
  static constexpr int kCount = kVectorBytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
};

template <typename Vector>
inline void interleave(const Vector& a, const Vector& b, Vector* low, Vector* high) {
  if constexpr (sizeof(a[0]) == 1) {
    typedef uint8_t Index __attribute__((vector_size(16)));
    *low = __builtin_shuffle(a, b, Index{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
    *high = __builtin_shuffle(a, b,
                              Index{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
  } else if constexpr (sizeof(a[0]) == 2) {
    typedef uint16_t Index __attribute__((vector_size(16)));
    *low = __builtin_shuffle(a, b, Index{0, 8, 1, 9, 2, 10, 3, 11});
    *high = __builtin_shuffle(a, b, Index{4, 12, 5, 13, 6, 14, 7, 15});
  } else {
    typedef uint32_t Index __attribute__((vector_size(16)));
    *low = __builtin_shuffle(a, b, Index{0, 4, 1, 5});
    *high = __builtin_shuffle(a, b, Index{2, 6, 3, 7});
  }
}

// Rows of `stride` elements -> out[column][rows], for columns 0 .. columns - 1 and rows a multiple
// of the lanes.
template <typename T>
void transpose(const T* from, int64_t stride, int rows, int columns, T* out) {
  constexpr int kN = Lanes<T>::kCount;
  using Vector = typename Lanes<T>::Vector;
  for (int r = 0; r < rows; r += kN) {
    for (int next = 0; next < columns && columns >= kN; next += kN) {
      const int c = next + kN <= columns ? next : columns - kN;  // the last may overlap
      Vector a[kN];
      Vector b[kN];
      for (int i = 0; i < kN; ++i) {
        __builtin_memcpy(&a[i], from + (r + i) * stride + c, kVectorBytes);
      }
      for (int step = 1; step < kN; step *= 2) {
        for (int i = 0; i < kN / 2; ++i) interleave(a[i], a[i + kN / 2], &b[2 * i], &b[2 * i + 1]);
        __builtin_memcpy(a, b, sizeof(a));
      }
      for (int i = 0; i < kN; ++i) {
        __builtin_memcpy(out + int64_t{c + i} * rows + r, &a[i], kVectorBytes);
      }
    }
    for (int c = 0; c < columns && columns < kN; ++c) {
      for (int i = 0; i < kN; ++i) out[int64_t{c} * rows + r + i] = from[(r + i) * stride + c];
    }
  }
}

inline void clear_padding(int head_dim, int tokens, float* values) {
  const int stride = padded_dim(head_dim);
  for (int t = 0; t < tokens; ++t) {
    for (int d = head_dim; d < stride; ++d) values[int64_t{t} * stride + d] = 0;
  }
}

}  // namespace kvsweep::kernels::KVSWEEP_ISA
