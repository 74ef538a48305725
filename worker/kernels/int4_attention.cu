// Scores = scale * Q K^T over packed INT4 pages, for decoding: one query per head.
//
// A block serves one KV head, 128 of its tokens and up to eight of the query heads that share the
// KV head. Queries lie in shared memory; codes and parameters are read from global memory once for
// all queries of the block, and only packed: 4.5 bits per element at groups of 64. Work is
// O(tokens * heads * head_dim), traffic is the pages once per eight query heads. Decoding inside
// the attention loop follows KIVI's fused kernels (arXiv 2402.02750, section 4); unlike there a
// decoded key is rounded as the codec rounds it, so that CPU and GPU see the same keys.
#include <cuda_runtime.h>

#include "worker/kernels/int4_attention.hpp"
#include "worker/kernels/int4_page.cuh"

namespace kvsweep::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kTeams = kThreads / kTeamLanes;
constexpr int kTokensPerBlock = 128;
constexpr int kMaxQueries = 8;  // per block; more query heads take further blocks

template <int kQueries>
__global__ void __launch_bounds__(kThreads) int4_scores_kernel(Int4Scores args, int first_query) {
  extern __shared__ float queries[];  // [kQueries][head_dim]
  const Int4PageShape shape = args.shape;
  const int kv_head = blockIdx.y;
  const int64_t query_head = static_cast<int64_t>(kv_head) * args.query_group + first_query;
  const float* source = args.queries + query_head * shape.head_dim;
  for (int i = threadIdx.x; i < kQueries * shape.head_dim; i += kThreads) queries[i] = source[i];
  __syncthreads();

  const int lane = threadIdx.x % kTeamLanes;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kTokensPerBlock;
  for (int step = 0; step < kTokensPerBlock; step += kTeams) {
    const int64_t token = begin + step + threadIdx.x / kTeamLanes;
    float sums[kQueries] = {};
    if (token < args.tokens) {
      const uint8_t* page = args.pages[token / shape.page_tokens];
      add_lane_scores<kQueries>(shape, page, kv_head, static_cast<int>(token % shape.page_tokens),
                                lane, queries, sums);
    }
    // All lanes of the warp take part in the shuffles, also those behind the last token.
#pragma unroll
    for (int query = 0; query < kQueries; ++query) {
#pragma unroll
      for (int width = kTeamLanes / 2; width > 0; width /= 2) {
        sums[query] += __shfl_down_sync(0xffffffffu, sums[query], width, kTeamLanes);
      }
      if (lane == 0 && token < args.tokens) {
        args.scores[(query_head + query) * args.tokens + token] = sums[query] * args.scale;
      }
    }
  }
}

template <int kQueries>
void launch(const Int4Scores& args, int first_query, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((args.tokens + kTokensPerBlock - 1) / kTokensPerBlock),
                  static_cast<unsigned>(args.shape.kv_heads));
  const size_t shared_bytes = sizeof(float) * kQueries * args.shape.head_dim;  // at most 16 KiB
  int4_scores_kernel<kQueries><<<grid, kThreads, shared_bytes, stream>>>(args, first_query);
}

void launch_queries(const Int4Scores& args, int first_query, int queries, cudaStream_t stream) {
  switch (queries) {
    case 1:
      return launch<1>(args, first_query, stream);
    case 2:
      return launch<2>(args, first_query, stream);
    case 3:
      return launch<3>(args, first_query, stream);
    case 4:
      return launch<4>(args, first_query, stream);
    case 5:
      return launch<5>(args, first_query, stream);
    case 6:
      return launch<6>(args, first_query, stream);
    case 7:
      return launch<7>(args, first_query, stream);
    default:
      return launch<kMaxQueries>(args, first_query, stream);
  }
}

}  // namespace

std::string launch_int4_scores(const Int4Scores& args, CUstream_st* stream) {
  if (std::string wrong = check_int4_scores(args); !wrong.empty()) return wrong;
  if (args.tokens == 0) return "";
  for (int first = 0; first < args.query_group; first += kMaxQueries) {
    const int left = args.query_group - first;
    launch_queries(args, first, left < kMaxQueries ? left : kMaxQueries, stream);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      return std::string("INT4 scores: the kernel could not be started: ") +
             cudaGetErrorString(error) + ".";
    }
  }
  return "";
}

}  // namespace kvsweep::kernels
