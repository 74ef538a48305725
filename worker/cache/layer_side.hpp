// All KV heads of one side of one layer: one Side, or one per run of heads that are stored
// differently (core/catalog/page_layout.hpp). What a head's attention gives depends on its own
// codec alone: bit for bit what a cache gives that stores all heads so.
#pragma once

#include <cstdint>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "core/result.hpp"
#include "worker/cache/side.hpp"

namespace kvsweep::cache {

// Working memory lent to one layer at a time, so that layers share it.
struct LayerWork {
  std::vector<Work> runs;
  std::vector<float> rows;  // a chunk's rows of one run
};

// Copyable as Side is.
class LayerSide {
 public:
  // `runs` outlives it; the other arguments as Side takes them.
  LayerSide(const std::vector<SideLayout>& runs, BaseType base, int64_t exact_tokens,
            SideName name);

  // The Side that holds this KV head of the layer.
  const Side& of(int head) const {
    return sides_.size() == 1 ? sides_.front() : sides_[run_of_[static_cast<size_t>(head)]];
  }
  std::vector<Side>& runs() { return sides_; }

  // fp32 rows [tokens][kv_heads][head_dim] of the whole layer. After an error only destruction is
  // allowed.
  Status append(const float* rows, int64_t tokens, LayerWork* work);
  void end_chunk(LayerWork* work);
  void keep(int64_t tokens);  // Side::keep

  // Of a layer in the base type: Side::read_originals.
  void read_originals(std::vector<float>* rows) const { sides_.front().read_originals(rows); }

  int64_t tokens() const { return sides_.front().tokens(); }    // of finished chunks
  int64_t pending() const { return sides_.front().pending(); }  // of the running chunk

 private:
  const float* rows_of(const SideLayout& run, const float* rows, int64_t tokens,
                       std::vector<float>* own) const;

  std::vector<Side> sides_;
  std::vector<uint16_t> run_of_;  // by KV head
};

}  // namespace kvsweep::cache
