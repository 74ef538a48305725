#include "worker/cache/kv_cache.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "worker/cache/attention.hpp"
#include "worker/cache/layer_side.hpp"

namespace kvsweep::cache {
namespace {

struct Layer {
  LayerSide keys;
  LayerSide values;
};

constexpr int64_t kKeepScratch = 64;  // tokens: larger chunks give their scratch memory back

int64_t free_bytes(const Pool& pool) {
  return pool.budget_bytes() - pool.used_bytes();
}

}  // namespace

struct KvCache::State {
  State(const CacheLayout& layout_in, int64_t prompt, Pool& pool_in)
      : layout(&layout_in), pool(&pool_in), prompt_tokens(prompt) {
    const int64_t exact = exact_tokens();
    layers.reserve(layout->keys.size());
    for (int i = 0; i < static_cast<int>(layout->keys.size()); ++i) {
      layers.push_back({LayerSide(layout->keys[i], layout->base, exact, {i, false}),
                        LayerSide(layout->values[i], layout->base, exact, {i, true})});
    }
    each_side([&](Side& side) { side.bind_blocks(&blocks); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  int64_t exact_tokens() const { return layout->prefill == Prefill::exact ? prompt_tokens : 0; }

  template <typename Work>
  void each_side(const Work& work) {
    for (Layer& layer : layers) {
      for (Side& side : layer.keys.runs()) work(side);
      for (Side& side : layer.values.runs()) work(side);
    }
  }

  using Blocks = std::vector<std::pair<size_t, Block>>;  // by index

  bool reserve(int64_t total_tokens);
  bool reserve_staging(int64_t total_tokens);
  std::optional<Blocks> blocks_for(int64_t total_tokens);
  void bind_staging(int64_t for_tokens, bool moved);
  size_t first_open_block();
  bool recodes();
  void drop_blocks();

  const CacheLayout* layout;
  Pool* pool;
  int64_t prompt_tokens;
  std::vector<Block> blocks;
  Block staging;
  int64_t staging_bytes = 0;
  int64_t staging_tokens = 0;  // how long a sequence the staging has room for
  std::vector<Layer> layers;
  LayerWork key_work;
  LayerWork value_work;
  int64_t tokens = 0;
  int64_t chunk = 0;  // tokens of the running chunk; 0 between chunks
  bool held = false;  // the chunk is
};

// Sides lie one after the other. `moved`: the memory holds already what the sides had in the old.
void KvCache::State::bind_staging(int64_t for_tokens, bool moved) {
  const int64_t length = std::max<int64_t>(0, for_tokens - layout->sinks);
  const int64_t prompt = layout->deciding_prompt(for_tokens, prompt_tokens);
  uint8_t* at = staging.get();
  each_side([&](Side& side) {
    side.bind_staging(at, side.layout().staging_tokens(length, prompt), moved);
    if (at != nullptr) at += side.layout().staging_bytes(length, prompt);
  });
  staging_tokens = for_tokens;
}

bool KvCache::State::reserve_staging(int64_t total_tokens) {
  const int64_t bytes = layout->staging_bytes(total_tokens, prompt_tokens);
  if (bytes <= staging_bytes) return true;
  Block grown = allocate_block(*pool, bytes);
  if (!grown) return false;
  const Block old = std::move(staging);  // until the sides have moved
  staging = std::move(grown);
  staging_bytes = bytes;
  bind_staging(total_tokens, false);
  return true;
}

// The first block that a side may still write into.
size_t KvCache::State::first_open_block() {
  int64_t coded = std::max<int64_t>(0, tokens - layout->sinks);
  each_side([&](Side& side) { coded = std::min(coded, side.settled()); });
  return static_cast<size_t>(coded / layout->page_tokens);
}

// Blocks of its own wherever the next tokens may be written: new ones, and copies of shared ones.
std::optional<KvCache::State::Blocks> KvCache::State::blocks_for(int64_t total_tokens) {
  const auto needed = static_cast<size_t>(layout->blocks(total_tokens, prompt_tokens));
  Blocks own;
  for (size_t i = first_open_block(); i < needed; ++i) {
    if (i < blocks.size() && sole_owner(blocks[i])) continue;
    Block fresh = allocate_block(*pool, layout->block_bytes);
    if (!fresh) return std::nullopt;
    if (i < blocks.size()) {
      std::memcpy(fresh.get(), blocks[i].get(), static_cast<size_t>(layout->block_bytes));
    }
    own.emplace_back(i, std::move(fresh));
  }
  return own;
}

bool KvCache::State::recodes() {
  bool some = false;
  each_side([&](Side& side) { some |= side.layout().window.rule == WindowRule::recode; });
  return some;
}

// Those that none of the tokens needs.
void KvCache::State::drop_blocks() {
  const auto kept = static_cast<size_t>(layout->blocks(tokens, prompt_tokens));
  if (kept < blocks.size()) blocks.resize(kept);
}

// All or nothing.
bool KvCache::State::reserve(int64_t total_tokens) {
  std::optional<Blocks> own = blocks_for(total_tokens);
  if (!own || !reserve_staging(total_tokens)) return false;
  for (auto& [index, block] : *own) {
    if (index == blocks.size()) blocks.emplace_back();
    blocks[index] = std::move(block);
  }
  return true;
}

KvCache::KvCache(const CacheLayout& layout, int64_t prompt_tokens, Pool& pool)
    : state_(std::make_unique<State>(layout, prompt_tokens, pool)) {}

KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;
KvCache::~KvCache() = default;

int64_t KvCache::tokens() const {
  return state_->tokens;
}

int64_t KvCache::bytes() const {
  const State& s = *state_;
  return static_cast<int64_t>(s.blocks.size()) * s.layout->block_bytes + s.staging_bytes;
}

Result<KvCache> KvCache::fork(int64_t prompt_tokens) const {
  State& from = *state_;
  const bool new_prompt = prompt_tokens != from.prompt_tokens;
  if (from.chunk != 0 || (new_prompt && from.tokens > 0 && from.exact_tokens() > 0)) {
    throw std::logic_error("fork: a chunk is open, or the prompt's length changes under it");
  }
  KvCache made(*from.layout, prompt_tokens, *from.pool);
  if (from.tokens == 0) return made;
  State& to = *made.state_;
  if (from.staging_bytes > 0) {
    to.staging = allocate_block(*from.pool, from.staging_bytes);
    if (!to.staging) {
      return Error{ErrorCode::oom, "the copy of a KV cache needs " +
                                       std::to_string(from.staging_bytes) +
                                       " bytes for its exact tokens, but only " +
                                       std::to_string(free_bytes(*from.pool)) + " of " +
                                       std::to_string(from.pool->budget_bytes()) +
                                       " are free; raise the cache budget or run fewer sequences "
                                       "at once"};
    }
    std::memcpy(to.staging.get(), from.staging.get(), static_cast<size_t>(from.staging_bytes));
  }
  to.staging_bytes = from.staging_bytes;
  to.blocks = from.blocks;
  to.layers = from.layers;
  to.tokens = from.tokens;
  to.each_side([&](Side& side) {
    side.bind_blocks(&to.blocks);
    if (new_prompt) side.set_exact_tokens(to.exact_tokens());
  });
  to.bind_staging(from.staging_tokens, true);
  return made;
}

Status KvCache::adopt(const KvCache& originals) {
  const State& from = *originals.state_;
  if (state_->tokens != 0 || from.chunk != 0) {
    throw std::logic_error("adopt: this cache has tokens, or a chunk of the other is open");
  }
  KVSWEEP_TRY(begin_chunk(from.tokens));
  std::vector<float> keys;
  std::vector<float> values;
  for (int layer = 0; layer < static_cast<int>(from.layers.size()); ++layer) {
    from.layers[layer].keys.read_originals(&keys);
    from.layers[layer].values.read_originals(&values);
    KVSWEEP_TRY(append(layer, {keys.data(), values.data(), from.tokens}));
    end_layer(layer);
  }
  end_chunk();
  return {};
}

Status KvCache::crop(int64_t tokens) {
  State& s = *state_;
  if (s.chunk != 0 || tokens < 0 || tokens > s.tokens) {
    throw std::logic_error("crop: to " + std::to_string(tokens) + " of " +
                           std::to_string(s.tokens) + " tokens, or a chunk is open");
  }
  bool possible = true;
  s.each_side([&](Side& side) { possible &= side.can_crop(tokens); });
  if (!possible) {
    return bad_input("the KV cache cannot be cropped from " + std::to_string(s.tokens) + " to " +
                     std::to_string(tokens) +
                     " tokens: the originals of tokens that would be exact again are gone; fork "
                     "the cache before the tokens that may have to go");
  }
  s.each_side([&](Side& side) { side.crop(tokens); });
  s.tokens = tokens;
  s.drop_blocks();
  return {};
}

Status KvCache::begin_chunk(int64_t new_tokens, bool held) {
  State& s = *state_;
  if (held && s.recodes()) throw std::logic_error("begin_chunk: held, where history is recoded");
  if (new_tokens < 1 || s.chunk != 0) {
    throw std::logic_error("begin_chunk: " + std::to_string(new_tokens) +
                           " tokens, or a chunk is open");
  }
  if (s.layout->longest_chunk(s.tokens, s.prompt_tokens, new_tokens) != new_tokens) {
    throw std::logic_error("begin_chunk: " + std::to_string(new_tokens) +
                           " tokens at once, where history is coded again");
  }
  if (!s.reserve(s.tokens + new_tokens)) {
    return Error{
        ErrorCode::oom,
        "the KV cache of " + std::to_string(s.tokens + new_tokens) + " tokens needs " +
            std::to_string(s.layout->allocated_bytes(s.tokens + new_tokens, s.prompt_tokens)) +
            " bytes, but only " + std::to_string(free_bytes(*s.pool)) + " of " +
            std::to_string(s.pool->budget_bytes()) + " are free beside the " +
            std::to_string(bytes()) +
            " it has; raise the cache budget or run fewer sequences at once"};
  }
  s.chunk = new_tokens;
  s.held = held;
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
  if (keys_unbiased(layer) != (queries.key_bias.bias != nullptr)) {
    throw std::logic_error("attend: layer " + std::to_string(layer) +
                           " needs the bias of its keys, or has keys that hold it");
  }
  attend_run(l.keys.of(kv_head), l.values.of(kv_head), kv_head, l.keys.tokens(), l.keys.pending(),
             queries);
}

void KvCache::end_layer(int layer) {
  State& s = *state_;
  Layer& l = s.layers.at(layer);
  if (l.values.pending() == 0) {
    throw std::logic_error("end_layer: layer " + std::to_string(layer) + " has no open chunk");
  }
  if (s.held) return;
  l.keys.end_chunk(&s.key_work);
  l.values.end_chunk(&s.value_work);
}

void KvCache::end_chunk() {
  end_chunk(state_->chunk);
}

void KvCache::end_chunk(int64_t kept) {
  State& s = *state_;
  if (kept < 1 || kept > s.chunk || (kept < s.chunk && !s.held)) {
    throw std::logic_error("end_chunk: keeps " + std::to_string(kept) + " of " +
                           std::to_string(s.chunk) + " tokens");
  }
  for (Layer& l : s.layers) {
    if (!s.held) break;
    if (l.values.pending() != s.chunk) throw std::logic_error("end_chunk: a layer is missing");
    if (kept < s.chunk) {
      l.keys.keep(kept);
      l.values.keep(kept);
    }
    l.keys.end_chunk(&s.key_work);
    l.values.end_chunk(&s.value_work);
  }
  s.tokens += kept;
  for (const Layer& l : s.layers) {
    if (l.keys.tokens() != s.tokens) throw std::logic_error("end_chunk: a layer is not finished");
  }
  if (s.chunk > kKeepScratch) {
    s.key_work = {};
    s.value_work = {};
  }
  if (kept < s.chunk) s.drop_blocks();
  s.chunk = 0;
}

void KvCache::drop_chunk() {
  State& s = *state_;
  if (s.chunk == 0 || !s.held) throw std::logic_error("drop_chunk: no held chunk is open");
  s.each_side([](Side& side) { side.keep(0); });
  s.drop_blocks();
  s.chunk = 0;
}

const uint8_t* KvCache::page(int layer, bool values, int64_t token, int head) const {
  const Layer& l = state_->layers.at(layer);
  return (values ? l.values : l.keys).of(head).page(token);
}

bool KvCache::keys_unbiased(int layer) const {
  return state_->layout->keys.at(layer).front().format.unbiased;
}

int64_t KvCache::coded(int layer, bool values, int head) const {
  const Layer& l = state_->layers.at(layer);
  return (values ? l.values : l.keys).of(head).coded();
}

}  // namespace kvsweep::cache
