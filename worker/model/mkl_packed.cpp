#include "worker/model/mkl_packed.hpp"

#include <dlfcn.h>

namespace kvsweep::model {
namespace {

// Values of CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_STORAGE and CBLAS_IDENTIFIER (Intel oneMKL
// developer reference, cblas_?gemm_pack).
constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;
constexpr int kPackedStorage = 151;
constexpr int kMatrixB = 162;

// The number of rows that packing prepares for. The packed form then serves any number of rows.
constexpr int kPackRows = 64;

template <typename Function>
bool find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

}  // namespace

const MklPacked* MklPacked::instance() {
  static const MklPacked* const found = [] {
    static MklPacked mkl;
    const bool all = find("cblas_sgemm_pack_get_size", mkl.pack_size_) &&
                     find("cblas_sgemm_pack", mkl.pack_) &&
                     find("cblas_sgemm_compute", mkl.compute_) &&
                     find("MKL_Set_Num_Threads_Local", mkl.local_threads_);
    return all ? &mkl : nullptr;
  }();
  return found;
}

size_t MklPacked::pack_bytes(int64_t out, int64_t in) const {
  return pack_size_(kMatrixB, kPackRows, static_cast<int>(out), static_cast<int>(in));
}

void MklPacked::pack(const float* weight, int64_t out, int64_t in, void* packed) const {
  pack_(kRowMajor, kMatrixB, kTranspose, kPackRows, static_cast<int>(out), static_cast<int>(in),
        1.0f, weight, static_cast<int>(in), static_cast<float*>(packed));
}

void MklPacked::multiply(const float* x, int64_t rows, int64_t in, const void* packed, int64_t out,
                         float* y, int64_t y_stride) const {
  const int before = local_threads_(1);
  compute_(kRowMajor, kNoTranspose, kPackedStorage, static_cast<int>(rows), static_cast<int>(out),
           static_cast<int>(in), x, static_cast<int>(in), static_cast<const float*>(packed),
           static_cast<int>(out), 0.0f, y, static_cast<int>(y_stride));
  local_threads_(before);
}

}  // namespace kvsweep::model
