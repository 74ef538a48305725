// A sequence with random keys, values and queries, run through KvCache in chunks, and the same
// attention by brute force in double over materialised rows.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "core/precision_map.hpp"
#include "worker/cache/kv_cache.hpp"

namespace kvsweep::cache::testing {

struct Case {
  SchemeOptions options;
  std::vector<LayerPairs> pairs = {{}};  // one per layer
  std::vector<LayerGeometry> layers = {{1, 64}};
  BaseType base = BaseType::fp16;
  int group = 1;  // query heads per KV head
  int64_t window = 0;
  float softcap = 0;
  int64_t prompt = 1;
  int64_t tokens = 1;  // prompt and decoded ones
  uint64_t seed = 1;
  std::string text() const;
};

// Inputs and the cache's layout; rows are [tokens][heads][head_dim], queries
// [tokens][heads][group][head_dim].
struct Sequence {
  explicit Sequence(const Case& c);

  Case config;
  Scheme scheme;
  CacheLayout layout;
  std::vector<std::vector<float>> keys;  // per layer
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> queries;

  int num_layers() const { return static_cast<int>(config.layers.size()); }
  float scale(int layer) const;
};

using Outputs = std::vector<std::vector<float>>;  // per layer, shaped like the queries

Outputs empty_outputs(const Sequence& setup);

// Runs the next `tokens` tokens as one held chunk and leaves it open.
Status open_held_chunk(const Sequence& setup, int64_t tokens, KvCache& cache, Outputs& out);

// Runs the next `tokens` tokens as one chunk; returns what a call returned in error.
Status run_chunk(const Sequence& setup, int64_t tokens, KvCache& cache, Outputs& out);

int64_t expected_bytes(const Sequence& setup, int64_t tokens);

// Runs the whole sequence in chunks of these sizes (repeated from the start when they run out; the
// last one is cut), checking bytes after every chunk.
Outputs run_chunks(const Sequence& setup, const std::vector<int64_t>& sizes, KvCache& cache);

// The layouts of a side: one, or one per run of KV heads.
const std::vector<SideLayout>& runs_of(const CacheLayout& layout, int layer, bool values);

// One side as every query may see it: rounded originals and decoded codes, both
// [tokens][heads][head_dim] in double.
struct Materialised {
  std::vector<double> exact;
  std::vector<double> decoded;  // turned back, where codes are of rotated rows
  std::vector<double> paged;    // as the pages hold them: run after run [coded][heads][head_dim]
  std::vector<int64_t> coded;   // tokens after the sinks that are decoded, by KV head
};
Materialised materialise(const Sequence& setup, int layer, bool values);

// What the raw pages of the cache hold, read by the documented layout, shaped like `paged`.
std::vector<double> decode_pages(const Sequence& setup, const KvCache& cache, int layer,
                                 bool values);

// Attention of every query in double.
Outputs brute_force(const Sequence& setup);

double max_difference(const Outputs& a, const Outputs& b);

// All pages of all layers, in order.
std::vector<uint8_t> page_bytes(const Sequence& setup, const KvCache& cache);

std::vector<int64_t> random_chunks(int64_t tokens, uint64_t seed);

}  // namespace kvsweep::cache::testing
