#include "worker/engine/cache_attention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "worker/model/parallel.hpp"

namespace kvsweep::engine {

Status CacheAttention::append(const model::AttentionCall& call) {
  const int64_t width = int64_t{call.kv_heads} * call.head_dim;
  std::vector<Status> outcomes(segments_.size());
  model::run_tasks(static_cast<int64_t>(segments_.size()), [&](int64_t i) {
    const Segment& segment = segments_[static_cast<size_t>(i)];
    const float* keys = segment.cache->keys_unbiased(call.layer) ? call.unbiased_keys : call.keys;
    outcomes[static_cast<size_t>(i)] = segment.cache->append(
        call.layer,
        {keys + segment.first_row * width, call.values + segment.first_row * width, segment.count});
  });
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].ok()) continue;
    const Error& error = outcomes[i].error();
    return Error{error.code, fmt::format("sequence {}: {}", segments_[i].sequence, error.message)};
  }
  return {};
}

bool CacheAttention::wants_unbiased_keys(int layer) const {
  return std::any_of(segments_.begin(), segments_.end(),
                     [&](const Segment& segment) { return segment.cache->keys_unbiased(layer); });
}

Status CacheAttention::attend(const model::AttentionCall& call) {
  KVSWEEP_TRY(append(call));
  const int64_t width = int64_t{call.heads} * call.head_dim;
  const int group = call.heads / call.kv_heads;
  const int64_t tasks = static_cast<int64_t>(segments_.size()) * call.kv_heads;
  model::run_tasks(tasks, [&](int64_t task) {
    const Segment& segment = segments_[static_cast<size_t>(task / call.kv_heads)];
    const int kv_head = static_cast<int>(task % call.kv_heads);
    const int64_t offset = segment.first_row * width + int64_t{kv_head} * group * call.head_dim;
    cache::KvCache::Queries queries;
    queries.q = call.queries + offset;
    queries.out = call.out + offset;
    queries.token_stride = width;
    queries.head_stride = call.head_dim;
    queries.group = group;
    queries.scale = call.scale;
    queries.window = call.window;
    queries.softcap = call.softcap;
    if (segment.cache->keys_unbiased(call.layer)) {
      queries.key_bias = {call.key_bias + int64_t{kv_head} * call.head_dim, call.rotary_channels,
                          call.angles == nullptr ? nullptr : call.angles[segment.first_row]};
    }
    segment.cache->attend(call.layer, kv_head, queries);
  });
  for (const Segment& segment : segments_) segment.cache->end_layer(call.layer);
  return {};
}

}  // namespace kvsweep::engine
