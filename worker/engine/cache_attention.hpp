// Attention of a mixed batch: every run of rows reads and extends the KV cache of its sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/cache/kv_cache.hpp"
#include "worker/model/model.hpp"

namespace kvsweep::engine {

// `count` consecutive rows of the batch that belong to one sequence and follow each other in it.
struct Segment {
  cache::KvCache* cache = nullptr;  // between begin_chunk(count) and end_chunk()
  int64_t sequence = 0;             // for messages
  int64_t first_row = 0;
  int64_t count = 0;
};

// Appends per sequence, then attends per sequence and KV head, in parallel. Who computes what has
// no influence on results: no sum crosses a task.
class CacheAttention final : public model::AttentionSink {
 public:
  // `segments` cover all rows of the batch and outlive this.
  explicit CacheAttention(const std::vector<Segment>& segments) : segments_(segments) {}

  // numerics: names sequence, layer, head and token.
  Status attend(const model::AttentionCall& call) override;
  bool wants_unbiased_keys(int layer) const override;

 private:
  Status append(const model::AttentionCall& call);

  const std::vector<Segment>& segments_;
};

}  // namespace kvsweep::engine
