// LayerPairs: the pair of a layer, or one pair per KV head of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/format.hpp"
#include "core/result.hpp"

namespace kvsweep {

// Canonical: a layer whose heads all have the same pair is the layer-level form, so that equal
// meanings compare equal and have one map_id.
class LayerPairs {
 public:
  LayerPairs() : LayerPairs(Pair{}) {}
  // Implicit: one pair for all heads is the usual layer.
  LayerPairs(Pair pair) : pairs_{pair} {}
  LayerPairs(Codec k, Codec v) : LayerPairs(Pair{k, v}) {}
  // Index = KV head; throws on none.
  static LayerPairs of_heads(std::vector<Pair> pairs);

  bool per_head() const { return pairs_.size() > 1; }
  // One for all heads, or one per KV head.
  const std::vector<Pair>& pairs() const { return pairs_; }
  // Throws on a head beyond those of a per-head layer.
  Pair of(int head) const { return per_head() ? pairs_.at(static_cast<size_t>(head)) : pairs_[0]; }

  friend bool operator==(const LayerPairs&, const LayerPairs&) = default;

 private:
  std::vector<Pair> pairs_;  // never empty
};

// "K8V4", or the heads' pairs in order: "K8V4|K4V2".
std::string to_string(const LayerPairs& layer);
// bad_input names the pair that is not known.
Result<LayerPairs> layer_pairs_from(std::string_view text);

// Longest to_string: 4096 KV heads (core/geometry.hpp) of 16 bytes and a bar.
inline constexpr size_t kMaxLayerPairsBytes = 4096 * 17;

// "layer 5", or "layer 5, KV head 1" where the heads have pairs of their own: for messages.
std::string place_of(const LayerPairs& pairs, int layer, int head);

}  // namespace kvsweep
