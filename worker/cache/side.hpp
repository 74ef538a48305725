// One side (keys or values) of one layer of one sequence, all KV heads or a run of them: rounds new
// tokens to the base type, codes them when the scheme says, keeps the exact ones, and fills tiles
// for attention.
//
// Where a token's row is found:
//   sink             in the sink rows of the staging area, always
//   base type        in its page, from the moment it is appended
//   coded            in its page (simulated: as decoding gives it, in fp32); a token may lie in
//                    scratch too while older queries see it exact
//   exact            in scratch if it belongs to the running chunk (Prefill::exact: to the prompt,
//                    until the prefill ends), else in the staging ring at slot token % room
#pragma once

#include <cstdint>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "core/result.hpp"
#include "worker/cache/pool.hpp"
#include "worker/codec/codec.hpp"
#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::cache {

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

// Copyable: a copy, bound to blocks and staging of its own, continues from the same state.
class Side {
 public:
  // `layout` outlives the side. `exact_tokens`: queries before this position see only originals
  // (the prompt's length under Prefill::exact, else 0).
  Side(const SideLayout& layout, BaseType base, int64_t exact_tokens, SideName name);

  // `blocks`, which may grow, and the memory behind it outlive the side or the next call.
  void bind_blocks(const std::vector<Block>* blocks) { blocks_ = blocks; }
  // Staging of layout.staging_bytes for a ring of `room` tokens; what the old one held is moved
  // unless it is the same memory's copy (`moved`).
  void bind_staging(uint8_t* staging, int64_t room, bool moved);

  // fp32 rows [tokens][kv_heads][head_dim] of its heads.
  Status append(const float* rows, int64_t tokens, Work* work);
  // Moves the chunk's newest tokens to the staging ring and gives the scratch memory back.
  void end_chunk(Work* work);
  // Before end_chunk: of the chunk's tokens only the first `tokens` have come. Before or after a
  // failed append: none has.
  void keep(int64_t tokens);

  // fp32 rows [tokens][kv_heads][head_dim] of all tokens of a side in the base type.
  void read_originals(std::vector<float>* rows) const;

  // Forgets all tokens from `tokens` on, between chunks. `can_crop`: whether the originals of
  // those that are no longer coded then are still there.
  bool can_crop(int64_t tokens) const;
  void crop(int64_t tokens);
  // The prompt's length, when nothing depended on it yet.
  void set_exact_tokens(int64_t tokens);

  const SideLayout& layout() const { return *layout_; }
  int head_dim() const { return layout_->head_dim; }
  int page_tokens() const { return layout_->page_tokens; }
  int sinks() const { return layout_->sinks; }
  bool hadamard() const { return layout_->format.hadamard; }
  int64_t tokens() const { return tokens_; }    // of finished chunks
  int64_t pending() const { return pending_; }  // of the running chunk
  // Tokens in pages: those from sinks() to sinks() + coded() - 1.
  int64_t coded() const { return coded_ - layout_->sinks; }
  // Of these, the first that will never be written again.
  int64_t settled() const { return layout_->window.rule == WindowRule::recode ? 0 : coded(); }

  // Tokens from sinks() to view - 1 are read from pages by the query at `position`, the others
  // exact.
  int64_t view(int64_t position) const;

  const uint8_t* page(int64_t token) const;

  // Tiles of the tokens start .. start + page_tokens - 1 of one head, counted within the layer
  // (worker/kernels/cpu_ops.hpp).
  // `page_tile` takes every row from the page that begins with token `start`. `exact_tile` takes
  // the rows from .. to - 1 from scratch and staging and leaves the others zero; `rows` is working
  // memory.
  void page_tile(int64_t start, int layer_head, float* tile) const;
  // The same page as its codes, where attention can work on them (kernels::folds).
  bool folds() const { return folds_; }
  kernels::PackedTile packed_tile(int64_t start, int layer_head) const;
  struct ExactRows {
    int64_t start = 0;
    int64_t from = 0;
    int64_t to = 0;
  };
  void exact_tile(const ExactRows& range, int layer_head, std::vector<uint8_t>* rows,
                  float* tile) const;

 private:
  int64_t slot(int64_t token) const { return token - layout_->sinks; }
  uint8_t* page_memory(int64_t token) const;
  uint8_t* code_row(int64_t token, int head) const;  // heads here count within the run
  uint8_t* param_row(int64_t token, int head) const;
  uint8_t* sink_row(int64_t token) const;  // of one token: all heads
  uint8_t* ring_row(int64_t token) const;  // likewise
  const uint8_t* exact_row(int64_t token, int head) const;
  int64_t coded_after(int64_t tokens) const;
  void count_views(int64_t tokens);
  void recount_views(int64_t tokens);
  void forget(int64_t tokens);
  Status append_sinks(const float* rows, int64_t tokens);
  Status append_to_pages(const float* rows, int64_t first, int64_t tokens);
  Status append_to_scratch(const float* rows, int64_t first, int64_t tokens, Work* work);
  Status encode(int64_t from, int64_t to, std::vector<float>* wide);
  // Of a simulated side (side_simulated.cpp).
  void read_row(int64_t token, int head, float* row) const;
  Status encode_simulated(int64_t from, int64_t to, std::vector<float>* wide);
  Status encode_history(int64_t to, std::vector<float>* wide);
  Status encode_run(int64_t token, int count, int head, std::vector<float>* wide);
  Error not_finite(const float* rows, int64_t first_token) const;
  Error fault(const codec::EncodeResult& result, int64_t token, int head) const;
  int token_group() const;
  int channel_group() const;
  kernels::PackedTile packed_shape() const;

  const SideLayout* layout_;
  BaseType base_;
  kernels::Element element_;
  const codec::Codec* codec_ = nullptr;  // nullptr: base type
  codec::Variant variant_;
  int64_t row_bytes_;  // of one exact row of one head
  int64_t exact_tokens_;
  SideName name_;
  bool folds_ = false;
  const std::vector<Block>* blocks_ = nullptr;
  uint8_t* staging_ = nullptr;
  int64_t room_ = 0;  // of the ring, tokens

  int64_t tokens_ = 0;
  int64_t pending_ = 0;
  int64_t coded_;               // end of the coded tokens
  std::vector<int64_t> views_;  // coded tokens after each, where only counting along tells
  CodedTokens counter_;
  std::vector<uint8_t> scratch_;  // exact rows [tokens][kv_heads][head_dim] from scratch_begin_ on
  int64_t scratch_begin_ = 0;
};

}  // namespace kvsweep::cache
