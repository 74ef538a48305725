#include "worker/codec/hadamard.hpp"

#include <bit>
#include <cmath>

namespace kvsweep::codec {
namespace {

// One block of n = 2^k elements.
void transform(float* x, int n) {
  for (int stride = 1; stride < n; stride *= 2) {
    for (int begin = 0; begin < n; begin += 2 * stride) {
      float* low = x + begin;
      float* high = low + stride;
      for (int i = 0; i < stride; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
  }
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(n)));
  for (int i = 0; i < n; ++i) x[i] *= scale;
}

}  // namespace

void hadamard(float* rows, int64_t count, int head_dim) {
  for (int64_t r = 0; r < count; ++r) {
    float* x = rows + r * head_dim;
    for (int left = head_dim; left > 0;) {
      const int n = static_cast<int>(std::bit_floor(static_cast<unsigned>(left)));
      transform(x, n);
      x += n;
      left -= n;
    }
  }
}

}  // namespace kvsweep::codec
