// The layout of a cache page, described once: the CPU cache and the CUDA kernels read the same
// bytes, and the coordinator counts them without torch.
//
// A page holds `page_tokens` tokens of one side (K or V) of one layer, all KV heads that are stored
// alike; kv_heads counts those:
//
//     +--------------------------------------------------------------+
//     | codes   [kv_heads][page_tokens][row_bytes]                   | then zero padding to 16
//     +--------------------------------------------------------------+
//     | params  [kv_heads][param_rows][params_per_row][param_bytes]  | then zero padding to 16
//     +--------------------------------------------------------------+
//
// Codes and parameters: worker/kernels/packed.hpp. Element i of a row of b-bit codes occupies bits
// i*b .. i*b+b-1, little-endian (int3: by 32 elements, the last padded).
// axis token:   param_rows = page_tokens,         params_per_row = ceil(head_dim / group)
// axis channel: param_rows = page_tokens / group, params_per_row = head_dim
// A side in the base type has rows of head_dim elements of that type and no params.
// A simulated side (Format::simulated) has rows of head_dim floats, what decoding gives, and no
// params. It takes more memory than the codes that it stands for, and costs count those.
//
// Where the KV heads of a layer have different pairs, each run of neighbouring heads with the same
// codec on this side has a page of its own (and a window and staging of its own, since a share that
// stays exact depends on the codec): K8V4|K4V4|K4V2|K4V2 has key pages of head 0 and of heads 1-3,
// value pages of heads 0-1 and of heads 2-3. All heads alike are one run, the whole side.
//
// A *block* is the pages of all layers and both sides under one block id: sides, and the runs of a
// side, lie one after the other at the offsets of `CacheLayout`. Page slot i of block b holds token
// sinks + b * page_tokens
// + i. Tokens that the scheme keeps exact lie in the sequence's staging area, side by side: for
// each the sinks [sinks][kv_heads][head_dim], then a ring [staging_tokens][kv_heads][head_dim] of
// the newest, both of the base type. docs/page_layout.svg draws it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/format.hpp"
#include "core/geometry.hpp"
#include "core/precision_map.hpp"

namespace kvsweep {

// One side of one layer, or a run of its KV heads.
struct SideLayout {
  Format format;
  Window window;       // keep 0, block 1 for a side in the base type
  float constant = 0;  // of a calibrated format
  int sinks = 0;       // tokens
  int first_head = 0;  // of the run, within the layer
  int kv_heads = 0;    // of the run
  int head_dim = 0;
  int page_tokens = 0;
  int64_t row_bytes = 0;  // codes of one token of one head
  int param_rows = 0;     // per head
  int params_per_row = 0;
  int param_bytes = 0;
  int64_t params_offset = 0;  // from the start of the page
  int64_t page_bytes = 0;     // multiple of 16
  int64_t block_offset = 0;   // from the start of the block
  int64_t exact_bytes = 0;    // of one exact token, all heads of the run

  // Bytes that the codes and parameters of the first `coded` tokens of a simulated side would take,
  // packed: by its published formula.
  int64_t published_bytes(int64_t coded) const;

  // Room of the ring of a sequence of `tokens` tokens, in tokens. Constant unless a share of the
  // sequence stays exact. `prompt` as in core/window.hpp.
  int64_t staging_tokens(int64_t tokens, int64_t prompt) const;
  // Bytes of its staging, a multiple of 16.
  int64_t staging_bytes(int64_t tokens, int64_t prompt) const;
};

struct CacheLayout {
  BaseType base = BaseType::fp16;
  Prefill prefill = Prefill::stepwise;
  int page_tokens = 0;
  int sinks = 0;
  // Index = layer, then the runs in the order of the heads: one where all heads are stored alike.
  std::vector<std::vector<SideLayout>> keys;
  std::vector<std::vector<SideLayout>> values;
  int64_t block_bytes = 0;  // one block: page_tokens tokens of the whole model

  // Of a sequence of `tokens` tokens whose first `prompt` are its prompt; not given: all of them.
  // Blocks are enough for the side that has coded most.
  int64_t blocks(int64_t tokens, std::optional<int64_t> prompt = {}) const;
  int64_t staging_bytes(int64_t tokens, std::optional<int64_t> prompt = {}) const;
  // Bytes that the cache allocates for one such sequence.
  int64_t allocated_bytes(int64_t tokens, std::optional<int64_t> prompt = {}) const;
  // What `batch` such sequences cost: what is allocated, except that a simulated side counts its
  // published bytes and as many exact tokens as there are.
  int64_t bytes(int64_t tokens, int64_t batch, std::optional<int64_t> prompt = {}) const;

  // Of `wanted` new tokens after `tokens`, how many may come in one chunk: all, except where a
  // scheme codes its history again. Then each decoded token comes alone, since it may see other
  // codes than the one before, and none together with the prompt.
  int64_t longest_chunk(int64_t tokens, int64_t prompt, int64_t wanted) const;

  // The prompt's length where it decides what is coded, else 0.
  int64_t deciding_prompt(int64_t tokens, std::optional<int64_t> prompt) const;
};

// `map` must fit `geometry` (check_map).
CacheLayout cache_layout(const PrecisionMap& map, const ModelGeometry& geometry, BaseType base);

// The layout of the originals of what `layout` codes: every side in the base type, with the same
// pages and sinks, so that a query sees either through the same tiles.
CacheLayout plain_layout(const CacheLayout& layout);

// Bits per element, everything counted: bytes * 8 / (tokens * elements_per_token).
double effective_bits(const CacheLayout& layout, const ModelGeometry& geometry, int64_t tokens);

// Code bits plus parameter bits per element, without window or padding: int4-token-g64 -> 4.5.
double format_bits(const Format& format, int head_dim, BaseType base);

}  // namespace kvsweep
