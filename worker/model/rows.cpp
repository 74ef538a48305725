// Compiled with vectorisation and without contraction of a * b + c (worker/model/CMakeLists.txt):
// the clones for AVX2 and AVX-512 then give the same bits as the plain one.
#include "worker/model/rows.hpp"

#include <bit>
#include <cmath>
#include <cstring>

// Not by clang, which compiles this for the fuzzers only: under its AddressSanitizer the resolvers
// of clones run before the sanitizer does.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang__)
#define KVSWEEP_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KVSWEEP_CLONES
#endif

namespace kvsweep::model {
namespace {

constexpr int64_t kLanes = 16;  // partial sums of every reduction, whatever the vector width

inline __attribute__((always_inline)) float exp_of(float x) {
  const float clamped = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  // Adding and taking away 1.5 * 2^23 rounds to the nearest whole number.
  const float magic = 12582912.0f;
  const float shifted = clamped * 1.44269504088896341f + magic;
  const float n = shifted - magic;
  float r = clamped - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const uint32_t power = (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(magic) + 127u)
                         << 23;
  const float value = p * std::bit_cast<float>(power);
  return x < -87.0f ? 0.0f : value;
}

inline __attribute__((always_inline)) uint16_t word_at(const uint8_t* bytes, int64_t i) {
  uint16_t word;
  std::memcpy(&word, bytes + 2 * i, sizeof(word));
  return word;
}

// Without branches, so that loops become vector code. Subnormals are 2^-14 + m 2^-24 - 2^-14.
inline __attribute__((always_inline)) float half_of(int32_t half) {
  const int32_t magnitude = half & 0x7fff;
  const int32_t shifted = magnitude << 13;
  const float tiny = std::bit_cast<float>(shifted + 0x38800000) - 0x1p-14f;
  int32_t bits = magnitude < 0x0400 ? std::bit_cast<int32_t>(tiny) : shifted + 0x38000000;
  bits = magnitude >= 0x7c00 ? shifted | 0x7f800000 : bits;
  return std::bit_cast<float>(bits | (half & 0x8000) << 16);
}

template <typename Number>
inline __attribute__((always_inline)) Number add_lanes(const Number* lanes) {
  Number half[kLanes / 2];
  for (int i = 0; i < 8; ++i) half[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; ++i) half[i] = half[i] + half[i + 4];
  return (half[0] + half[2]) + (half[1] + half[3]);
}

}  // namespace

KVSWEEP_CLONES
void widen_halves(const uint8_t* halves, int64_t width, float* out) {
  for (int64_t i = 0; i < width; ++i) out[i] = half_of(word_at(halves, i));
}

KVSWEEP_CLONES
void widen_bf16(const uint8_t* words, int64_t width, float* out) {
  for (int64_t i = 0; i < width; ++i) {
    out[i] = std::bit_cast<float>(uint32_t{word_at(words, i)} << 16);
  }
}

KVSWEEP_CLONES
void rms_norm(const float* x, const float* weight, float eps, int64_t width, float* out) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane] * x[i + lane];
  }
  for (int64_t lane = 0; i + lane < width; ++lane) lanes[lane] += x[i + lane] * x[i + lane];
  const float mean = add_lanes(lanes) / static_cast<float>(width);
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (i = 0; i < width; ++i) out[i] = weight[i] * (x[i] * factor);
}

KVSWEEP_CLONES
void silu_times(const float* gate, const float* up, int64_t width, float* out) {
  for (int64_t i = 0; i < width; ++i) {
    out[i] = gate[i] / (1.0f + exp_of(-gate[i])) * up[i];
  }
}

// (1 + tanh(z)) / 2 = 1 / (1 + exp(-2 z)).
KVSWEEP_CLONES
void gelu_tanh_times(const float* gate, const float* up, int64_t width, float* out) {
  for (int64_t i = 0; i < width; ++i) {
    const float g = gate[i];
    const float z = 0.7978845608028654f * (g + 0.044715f * (g * g * g));
    out[i] = g / (1.0f + exp_of(-2.0f * z)) * up[i];
  }
}

// tanh(z) = 1 - 2 / (1 + exp(2 z)): near 0 it loses relative, not absolute, accuracy.
KVSWEEP_CLONES
void soft_cap(float* x, float cap, int64_t width) {
  for (int64_t i = 0; i < width; ++i) {
    x[i] = cap * (1.0f - 2.0f / (1.0f + exp_of(2.0f * (x[i] / cap))));
  }
}

KVSWEEP_CLONES
void multiply(float* x, float factor, int64_t width) {
  for (int64_t i = 0; i < width; ++i) x[i] *= factor;
}

KVSWEEP_CLONES
void add_to(float* x, const float* y, int64_t width) {
  for (int64_t i = 0; i < width; ++i) x[i] += y[i];
}

KVSWEEP_CLONES
void rotate(const float* x, const float* cos_sin, int heads, int64_t half, float* out) {
  for (int head = 0; head < heads; ++head) {
    const float* in = x + head * 2 * half;
    float* to = out + head * 2 * half;
    for (int64_t i = 0; i < half; ++i) {
      const float low = in[i];
      const float high = in[half + i];
      to[i] = low * cos_sin[i] - high * cos_sin[half + i];
      to[half + i] = high * cos_sin[i] + low * cos_sin[half + i];
    }
  }
}

KVSWEEP_CLONES
float max_or_nan(const float* x, int64_t width) {
  float lanes[kLanes];
  float poison[kLanes] = {};  // 0 while all values are finite
  for (float& lane : lanes) lane = x[0];
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
      poison[lane] += x[i + lane] * 0.0f;
    }
  }
  for (int64_t lane = 0; i + lane < width; ++lane) {
    lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
    poison[lane] += x[i + lane] * 0.0f;
  }
  float best = lanes[0];
  for (const float lane : lanes) best = lane > best ? lane : best;
  return best + add_lanes(poison);
}

// 0 * x is 0 for finite x and NaN otherwise, and the loop has no branches.
KVSWEEP_CLONES
bool all_finite(const float* x, int64_t width) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane] * 0.0f;
  }
  for (int64_t lane = 0; i + lane < width; ++lane) lanes[lane] += x[i + lane] * 0.0f;
  return add_lanes(lanes) == 0.0f;
}

KVSWEEP_CLONES
double sum_exp(const float* x, float shift, int64_t width) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += static_cast<double>(exp_of(x[i + lane] - shift));
    }
  }
  for (int64_t lane = 0; i + lane < width; ++lane) {
    lanes[lane] += static_cast<double>(exp_of(x[i + lane] - shift));
  }
  return add_lanes(lanes);
}

KVSWEEP_CLONES
double divergence(const float* x, double log_sum_x, const float* y, double log_sum_y,
                  int64_t width) {
  const float shift_x = static_cast<float>(log_sum_x);
  const double between = log_sum_y - log_sum_x;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double p = static_cast<double>(exp_of(x[i + lane] - shift_x));
      lanes[lane] += p * (static_cast<double>(x[i + lane]) - y[i + lane] + between);
    }
  }
  for (int64_t lane = 0; i + lane < width; ++lane) {
    const double p = static_cast<double>(exp_of(x[i + lane] - shift_x));
    lanes[lane] += p * (static_cast<double>(x[i + lane]) - y[i + lane] + between);
  }
  return add_lanes(lanes);
}

float fast_exp(float x) {
  return exp_of(x);
}

}  // namespace kvsweep::model
