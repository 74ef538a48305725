// One side (keys or values) of one layer of one sequence: rounds new tokens to the base type, codes
// them when the scheme says, keeps the exact ones, and fills tiles for attention.
//
// Where a token's row is found:
//   base type        in its page, from the moment it is appended
//   coded            in its page; a token may lie in scratch too while older queries see it exact
//   exact            in scratch if it belongs to the running chunk (Prefill::exact: to the prompt,
//                    until the prefill ends), else in the staging ring at slot token % capacity
#pragma once

#include <cstdint>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "core/result.hpp"
#include "worker/codec/codec.hpp"
#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::cache {

// The memory of one sequence, common to all sides. `blocks` grows in begin_chunk.
struct Memory {
  std::vector<uint8_t*> blocks;
  uint8_t* staging = nullptr;
};

// Working memory lent to one side at a time, so that layers share it.
struct Work {
  std::vector<uint8_t> scratch;  // becomes the side's scratch rows for the running chunk
  std::vector<float> wide;       // rows on their way into the encoder
};

// Who a side is, for error messages.
struct SideName {
  int layer = 0;
  bool values = false;
};

class Side {
 public:
  // `layout` and `memory` outlive the side. `exact_tokens`: queries before this position see only
  // originals (the prompt's length under Prefill::exact, else 0).
  Side(const SideLayout& layout, BaseType base, int64_t exact_tokens, SideName name,
       const Memory& memory);

  // fp32 rows [tokens][kv_heads][head_dim].
  Status append(const float* rows, int64_t tokens, Work* work);
  // Moves the chunk's exact tokens to the staging ring and gives the scratch memory back.
  void end_chunk(Work* work);

  int head_dim() const { return layout_->head_dim; }
  int page_tokens() const { return layout_->page_tokens; }
  int64_t tokens() const { return tokens_; }    // of finished chunks
  int64_t pending() const { return pending_; }  // of the running chunk
  int64_t coded() const { return coded_; }      // base type: tokens in pages

  // Tokens before this one are read from pages by the query at `position`, the others exact.
  int64_t view(int64_t position) const;

  const uint8_t* page(int64_t token) const;

  // Tiles of the tokens start .. start + page_tokens - 1 of one head (worker/kernels/cpu_ops.hpp).
  // `page_tile` takes every row from the page. `exact_tile` takes the rows from .. to - 1 from
  // scratch and staging and leaves the others zero; `rows` is working memory.
  void page_tile(int64_t start, int head, float* tile) const;
  struct ExactRows {
    int64_t start = 0;
    int64_t from = 0;
    int64_t to = 0;
  };
  void exact_tile(const ExactRows& range, int head, std::vector<uint8_t>* rows, float* tile) const;

 private:
  uint8_t* page_memory(int64_t token) const;
  uint8_t* code_row(int64_t token, int head) const;
  uint8_t* param_row(int64_t token, int head) const;
  uint8_t* ring_row(int64_t token, int head) const;
  const uint8_t* exact_row(int64_t token, int head) const;
  Status append_to_pages(const float* rows, int64_t tokens);
  Status append_to_scratch(const float* rows, int64_t tokens, Work* work);
  Status encode(int64_t from, int64_t to, std::vector<float>* wide);
  Status encode_run(int64_t token, int count, int head, std::vector<float>* wide);
  Error not_finite(const float* rows, int64_t first_token) const;
  Error fault(const codec::EncodeResult& result, int64_t token, int head) const;
  int token_group() const;

  const SideLayout* layout_;
  BaseType base_;
  kernels::Element element_;
  const codec::Codec* codec_ = nullptr;  // nullptr: base type
  int64_t row_bytes_;                    // of one exact row of one head
  int64_t exact_tokens_;
  SideName name_;
  const Memory* memory_;

  int64_t tokens_ = 0;
  int64_t pending_ = 0;
  int64_t coded_ = 0;
  std::vector<uint8_t> scratch_;  // exact rows [tokens][kv_heads][head_dim] from scratch_begin_ on
  int64_t scratch_begin_ = 0;
};

}  // namespace kvsweep::cache
