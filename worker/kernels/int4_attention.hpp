// Attention scores over packed INT4 keys: dequantize and dot on the GPU, page by page.
//
// Pages lie as core/catalog/page_layout.hpp says, axis token, 4 bits:
//   codes  [kv_heads][page_tokens][head_dim / 2] bytes, element i of a row in bits 4i .. 4i+3
//   params [kv_heads][page_tokens][ceil(head_dim / param_group)] {scale, min} as fp16,
//          from params_offset on
// and the key is code * scale + min, rounded after each operation as the codec does, so a decoded
// key equals the CPU's bit for bit; sums over head_dim differ from the CPU's only by their order.
#pragma once

#include <cstdint>
#include <string>

struct CUstream_st;  // what cudaStream_t points to, so that callers need no CUDA header

namespace kvsweep::kernels {

// The shape of one page of keys.
struct Int4PageShape {
  int kv_heads = 0;
  int page_tokens = 0;
  int head_dim = 0;           // multiple of 8
  int param_group = 0;        // elements that share {scale, min}: a multiple of 8, or head_dim
  int64_t params_offset = 0;  // bytes from the start of the page, multiple of 4

  int64_t row_bytes() const { return head_dim / 2; }
  int params_per_row() const { return (head_dim + param_group - 1) / param_group; }
  int64_t page_bytes() const;  // without padding at the end
};

// One query per head of one sequence. All pointers are device memory that the caller owns and keeps
// until the stream has passed this call.
struct Int4Scores {
  Int4PageShape shape;
  int query_group = 0;                    // query heads per KV head, 1 .. 64
  int64_t tokens = 0;                     // coded tokens; token t is in pages[t / page_tokens]
  const float* queries = nullptr;         // [kv_heads * query_group, head_dim]
  const uint8_t* const* pages = nullptr;  // [ceil(tokens / page_tokens)], each 16-byte aligned
  float scale = 1.0f;                     // multiplies q·k, usually 1 / sqrt(head_dim)
  float* scores = nullptr;                // out [kv_heads * query_group, tokens]
};

// Empty when the kernel can run these shapes; else one sentence naming the value and what is
// allowed. Looks at shapes only.
std::string check_int4_scores(const Int4Scores& args);

// Queues the kernel on `stream` (null: the default stream) of the current device and returns at
// once; empty on success. Present only in builds with CUDA. Thread-safe.
std::string launch_int4_scores(const Int4Scores& args, CUstream_st* stream);

}  // namespace kvsweep::kernels
