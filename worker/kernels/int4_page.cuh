// The arithmetic of one packed INT4 key page, written once for GPU and CPU: the kernel runs it on
// the device, the tests and the self-check on the host.
#pragma once

#include <cstdint>
#include <cstring>

#include "worker/kernels/int4_attention.hpp"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#define KVSWEEP_HOST_DEVICE __host__ __device__
#else
#define KVSWEEP_HOST_DEVICE
#endif

namespace kvsweep::kernels {

// A row of codes is read by a team of eight lanes, a word of eight codes (4 bytes) each: one
// head of 64 elements is one 32-byte sector, four teams make a warp.
constexpr int kTeamLanes = 8;
constexpr int kCodesPerWord = 8;

// fp16 bit pattern to float, finite values only (a codec stores no others).
// Host: the exponent is moved by a multiplication, exact for subnormals too: 0x3c00 -> 1.
KVSWEEP_HOST_DEVICE inline float param_to_float(uint16_t half) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(half));
#else
  const uint32_t bits = static_cast<uint32_t>(half & 0x7fffu) << 13;
  float magnitude;
  std::memcpy(&magnitude, &bits, sizeof magnitude);
  magnitude *= 5.192296858534828e33f;  // 2^112 = 2^(127 - 15)
  return (half & 0x8000u) != 0 ? -magnitude : magnitude;
#endif
}

// code * scale + min without a fused multiply-add: equal to the codec's value bit for bit.
KVSWEEP_HOST_DEVICE inline float decode_key(uint32_t code, float scale, float min) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(__fmul_rn(static_cast<float>(code), scale), min);
#else
  const volatile float product = static_cast<float>(code) * scale;  // volatile: never fused
  return product + min;
#endif
}

// Adds one lane's share of q·k for one token of one KV head to sums[0 .. kQueries).
// queries [kQueries][head_dim]. Lane l takes the words l, l + 8, l + 16 ... of the row.
// O(kQueries * head_dim / 8); every code is decoded once, whatever the number of queries.
template <int kQueries>
KVSWEEP_HOST_DEVICE inline void add_lane_scores(const Int4PageShape& shape, const uint8_t* page,
                                                int kv_head, int token, int lane,
                                                const float* queries, float (&sums)[kQueries]) {
  const int64_t row = static_cast<int64_t>(kv_head) * shape.page_tokens + token;
  const uint8_t* codes = page + row * (shape.head_dim / 2);
  const int params_per_row = (shape.head_dim + shape.param_group - 1) / shape.param_group;
  const uint8_t* params = page + shape.params_offset + row * params_per_row * 4;
  for (int word = lane; word < shape.head_dim / kCodesPerWord; word += kTeamLanes) {
    uint32_t packed;
    uint16_t pair[2];  // {scale, min}
    const int first = word * kCodesPerWord;
#if defined(__CUDA_ARCH__)
    packed = *reinterpret_cast<const uint32_t*>(codes + word * 4);
    const uint32_t both =
        *reinterpret_cast<const uint32_t*>(params + first / shape.param_group * 4);
    pair[0] = static_cast<uint16_t>(both);
    pair[1] = static_cast<uint16_t>(both >> 16);
#else
    std::memcpy(&packed, codes + word * 4, sizeof packed);
    std::memcpy(pair, params + first / shape.param_group * 4, sizeof pair);
#endif
    const float scale = param_to_float(pair[0]);
    const float min = param_to_float(pair[1]);
    for (int i = 0; i < kCodesPerWord; ++i) {
      const float key = decode_key((packed >> (4 * i)) & 15u, scale, min);
      for (int query = 0; query < kQueries; ++query) {
        sums[query] += queries[query * shape.head_dim + first + i] * key;
      }
    }
  }
}

// The score a team computes, on the host: lanes one after the other, summed pairwise as the
// kernel's shuffles do. `query` [head_dim].
inline float team_score(const Int4PageShape& shape, const uint8_t* page, int kv_head, int token,
                        const float* query, float scale) {
  float lanes[kTeamLanes];
  for (int lane = 0; lane < kTeamLanes; ++lane) {
    float sum[1] = {0.0f};
    add_lane_scores<1>(shape, page, kv_head, token, lane, query, sum);
    lanes[lane] = sum[0];
  }
  for (int width = kTeamLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0] * scale;
}

}  // namespace kvsweep::kernels
