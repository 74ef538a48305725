// KvCache: the packed KV cache of one sequence under one map: pages of codes and parameters
// (core/catalog/page_layout.hpp), staging rings of exact tokens, and attention that reads both
// page by page. Nothing ever dequantizes more than one page at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "core/result.hpp"
#include "worker/cache/key_bias.hpp"
#include "worker/cache/pool.hpp"

namespace kvsweep::cache {

// New tokens of one layer: keys, values [tokens, kv_heads, head_dim], after RoPE, fp32. Keys lack
// the bias of their projection where KvCache::keys_unbiased says so.
struct LayerInput {
  const float* keys = nullptr;
  const float* values = nullptr;
  int64_t tokens = 0;
};

// One sequence. Calls come in this order for every chunk of new tokens:
//   begin_chunk(n); for each layer: append(layer, in); attend(...) per KV head; end_layer(layer);
//   then end_chunk().
// `append` rounds keys and values to the base type, then codes every token that the scheme says is
// coded by the end of the chunk; each query still sees exactly what step-by-step decoding would
// have shown it. Different sequences, and different heads of one sequence, may run in parallel.
class KvCache {
 public:
  // `layout` and `pool` outlive the cache. `prompt_tokens` is the length of the prompt, which
  // Prefill::exact needs.
  KvCache(const CacheLayout& layout, int64_t prompt_tokens, Pool& pool);
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  int64_t tokens() const;  // of finished chunks
  int64_t bytes() const;   // blocks (shared ones too) and staging

  // Another sequence with the same tokens, between chunks. Blocks are shared until one of the two
  // writes into them (copy-on-write); staging is copied. `prompt_tokens`: of the new sequence;
  // where prefill is exact it must be this one's unless no token has come. oom when the pool is
  // full. Both may then run in parallel.
  Result<KvCache> fork(int64_t prompt_tokens) const;

  // Takes over all tokens of `originals`, a cache of plain_layout between chunks: what a prefill
  // leaves whose queries saw those keys and values, but without computing it. This cache is empty.
  // Errors as begin_chunk and append.
  Status adopt(const KvCache& originals);

  // Forgets all tokens from `tokens` on, between chunks; blocks that are then empty go back to the
  // pool. What follows is bit for bit what a cache does that never saw them. bad_input, and nothing
  // changes, when tokens would have to become exact again whose originals are gone: a scheme's
  // ring holds its newest tokens only. So per-token without residual window crops anywhere, a
  // scheme with one as far as its ring reaches (KIVI's values: not one token), and none into a
  // prompt whose queries saw it exact; a fork taken before serves them.
  Status crop(int64_t tokens);

  // At most CacheLayout::longest_chunk tokens. Reserves the blocks that `new_tokens` more tokens
  // need; oom when the pool is full (nothing changes then). `held`: it is decided at the end of the
  // chunk how many of its tokens stay. Until then their originals of all layers stay in memory of
  // their own, beside the pool's, and the staging rings as they were before the chunk. Not of a
  // layout that codes its history again.
  Status begin_chunk(int64_t new_tokens, bool held = false);

  // numerics when a key or value is NaN or infinite, or leaves the range of the parameters:
  // names layer, head and token. After an error only drop_chunk, of a held one, and destruction are
  // allowed.
  Status append(int layer, const LayerInput& input);

  // Attention of all new tokens' queries that share `kv_head`.
  // queries [tokens, group, head_dim] with strides (in floats) query_token_stride and
  // query_head_stride; out has the same shape and strides. `scale` multiplies q·k.
  // The reduction order depends on the query's position and the scheme alone. A NaN in a query
  // shows in its outputs.
  struct Queries {
    const float* q = nullptr;
    float* out = nullptr;
    int64_t token_stride = 0;
    int64_t head_stride = 0;
    int group = 1;  // query heads per KV head
    float scale = 1.0f;
    int64_t window = 0;  // tokens a query sees, itself included (sliding window); 0 = all
    float softcap = 0;   // scaled scores become cap * tanh(s / cap) (Gemma 2); 0 = as they are
    KeyBias key_bias;    // required where keys_unbiased, else nothing
  };
  void attend(int layer, int kv_head, const Queries& queries) const;

  void end_layer(int layer);
  void end_chunk();
  // Of a held chunk: its first `kept` tokens stay, at least one, and the others never came: what
  // follows is bit for bit what a cache does that saw `kept` tokens alone.
  void end_chunk(int64_t kept);
  // Of a held chunk, anywhere after begin_chunk: none of its tokens came.
  void drop_chunk();

  // Read access for tests: the raw page of (layer, side) that holds `token` of the run of KV heads
  // with `head`, and how many tokens of that run are coded now.
  const uint8_t* page(int layer, bool values, int64_t token, int head = 0) const;
  int64_t coded(int layer, bool values, int head = 0) const;

  // Whether this layer's keys are appended without the bias of their projection, which `attend`
  // then adds (Format::unbiased).
  bool keys_unbiased(int layer) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::cache
