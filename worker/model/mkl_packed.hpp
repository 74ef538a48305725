// MKL's packed single-precision GEMM, found in the libtorch that is loaded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvsweep::model {

// libtorch's x86 builds contain MKL and export these of its functions; its headers do not declare
// them. Looked up by name, so that a libtorch without them still loads (Gemm then uses at::linear).
class MklPacked {
 public:
  // nullptr when one of the functions is missing.
  static const MklPacked* instance();

  // Bytes for the packed form of a weight [out, in]. Most of a small weight's are never touched.
  size_t pack_bytes(int64_t out, int64_t in) const;
  void pack(const float* weight, int64_t out, int64_t in, void* packed) const;

  // y [rows, out] with row stride y_stride = x [rows, in] times the packed weight, on one thread.
  void multiply(const float* x, int64_t rows, int64_t in, const void* packed, int64_t out, float* y,
                int64_t y_stride) const;

 private:
  using PackSize = size_t (*)(int, int, int, int);
  using Pack = void (*)(int, int, int, int, int, int, float, const float*, int, float*);
  using Compute = void (*)(int, int, int, int, int, int, const float*, int, const float*, int,
                           float, float*, int);
  using LocalThreads = int (*)(int);

  PackSize pack_size_ = nullptr;
  Pack pack_ = nullptr;
  Compute compute_ = nullptr;
  LocalThreads local_threads_ = nullptr;
};

}  // namespace kvsweep::model
