#include "worker/cache/kv_cache.hpp"

#include <stdexcept>
#include <string>

#include "worker/cache/attention.hpp"
#include "worker/cache/side.hpp"

namespace kvsweep::cache {
namespace {

struct Layer {
  Side keys;
  Side values;
};

constexpr int64_t kKeepScratch = 64;  // tokens: larger chunks give their scratch memory back

}  // namespace

struct KvCache::State {
  State(const CacheLayout& layout_in, const Scheme& scheme, int64_t prompt_tokens, Pool& pool_in)
      : layout(&layout_in), pool(&pool_in) {
    const int64_t exact = scheme.prefill == Prefill::exact ? prompt_tokens : 0;
    layers.reserve(layout->keys.size());
    for (int i = 0; i < static_cast<int>(layout->keys.size()); ++i) {
      layers.push_back({Side(layout->keys[i], layout->base, exact, {i, false}, memory),
                        Side(layout->values[i], layout->base, exact, {i, true}, memory)});
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    release_blocks(0);
    release_staging();
  }

  void release_blocks(size_t keep) {
    while (memory.blocks.size() > keep) {
      pool->release(memory.blocks.back(), layout->block_bytes);
      memory.blocks.pop_back();
    }
  }

  void release_staging() {
    pool->release(memory.staging, layout->staging_bytes);
    memory.staging = nullptr;
  }

  bool reserve(int64_t total_tokens);

  const CacheLayout* layout;
  Pool* pool;
  Memory memory;
  std::vector<Layer> layers;
  Work key_work;
  Work value_work;
  int64_t tokens = 0;
  int64_t chunk = 0;  // tokens of the running chunk; 0 between chunks
};

// All or nothing.
bool KvCache::State::reserve(int64_t total_tokens) {
  const size_t blocks_before = memory.blocks.size();
  const bool staging_before = memory.staging != nullptr;
  bool ok = true;
  if (!staging_before && layout->staging_bytes > 0) {
    memory.staging = static_cast<uint8_t*>(pool->allocate(layout->staging_bytes));
    ok = memory.staging != nullptr;
  }
  const auto needed = static_cast<size_t>(layout->blocks(total_tokens));
  while (ok && memory.blocks.size() < needed) {
    auto* block = static_cast<uint8_t*>(pool->allocate(layout->block_bytes));
    if (block == nullptr) {
      ok = false;
    } else {
      memory.blocks.push_back(block);
    }
  }
  if (!ok) {
    release_blocks(blocks_before);
    if (!staging_before) release_staging();
  }
  return ok;
}

KvCache::KvCache(const CacheLayout& layout, const Scheme& scheme, int64_t prompt_tokens, Pool& pool)
    : state_(std::make_unique<State>(layout, scheme, prompt_tokens, pool)) {}

KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;
KvCache::~KvCache() = default;

int64_t KvCache::tokens() const {
  return state_->tokens;
}

int64_t KvCache::bytes() const {
  const State& s = *state_;
  const int64_t staging = s.memory.staging == nullptr ? 0 : s.layout->staging_bytes;
  return static_cast<int64_t>(s.memory.blocks.size()) * s.layout->block_bytes + staging;
}

Status KvCache::begin_chunk(int64_t new_tokens) {
  State& s = *state_;
  if (new_tokens < 1 || s.chunk != 0) {
    throw std::logic_error("begin_chunk: " + std::to_string(new_tokens) +
                           " tokens, or a chunk is open");
  }
  if (!s.reserve(s.tokens + new_tokens)) {
    return Error{ErrorCode::oom,
                 "the KV cache of " + std::to_string(s.tokens + new_tokens) + " tokens needs " +
                     std::to_string(s.layout->bytes(s.tokens + new_tokens, 1)) +
                     " bytes, but only " +
                     std::to_string(s.pool->budget_bytes() - s.pool->used_bytes()) + " of " +
                     std::to_string(s.pool->budget_bytes()) + " are free beside the " +
                     std::to_string(bytes()) +
                     " it has; raise the cache budget or run fewer sequences at once"};
  }
  s.chunk = new_tokens;
  return {};
}

Status KvCache::append(int layer, const LayerInput& input) {
  State& s = *state_;
  Layer& l = s.layers.at(layer);
  if (input.tokens != s.chunk || l.keys.pending() != 0 || l.keys.tokens() != s.tokens) {
    throw std::logic_error("append: layer " + std::to_string(layer) +
                           " is out of turn, or its tokens are not the chunk's");
  }
  KVSWEEP_TRY(l.keys.append(input.keys, input.tokens, &s.key_work));
  return l.values.append(input.values, input.tokens, &s.value_work);
}

void KvCache::attend(int layer, int kv_head, const Queries& queries) const {
  const Layer& l = state_->layers.at(layer);
  attend_run(l.keys, l.values, kv_head, l.keys.tokens(), l.keys.pending(), queries);
}

void KvCache::end_layer(int layer) {
  State& s = *state_;
  Layer& l = s.layers.at(layer);
  if (l.values.pending() == 0) {
    throw std::logic_error("end_layer: layer " + std::to_string(layer) + " has no open chunk");
  }
  l.keys.end_chunk(&s.key_work);
  l.values.end_chunk(&s.value_work);
}

void KvCache::end_chunk() {
  State& s = *state_;
  s.tokens += s.chunk;
  for (const Layer& l : s.layers) {
    if (l.keys.tokens() != s.tokens) throw std::logic_error("end_chunk: a layer is not finished");
  }
  if (s.chunk > kKeepScratch) {
    s.key_work = {};
    s.value_work = {};
  }
  s.chunk = 0;
}

const uint8_t* KvCache::page(int layer, bool values, int64_t token) const {
  const Layer& l = state_->layers.at(layer);
  return (values ? l.values : l.keys).page(token);
}

int64_t KvCache::coded(int layer, bool values) const {
  const Layer& l = state_->layers.at(layer);
  return (values ? l.values : l.keys).coded();
}

}  // namespace kvsweep::cache
