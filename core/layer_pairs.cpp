#include "core/layer_pairs.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/text.hpp"

namespace kvsweep {

LayerPairs LayerPairs::of_heads(std::vector<Pair> pairs) {
  if (pairs.empty()) throw std::invalid_argument("LayerPairs::of_heads: no heads");
  const Pair first = pairs.front();
  if (std::all_of(pairs.begin(), pairs.end(), [&](const Pair& p) { return p == first; })) {
    return first;
  }
  LayerPairs made;
  made.pairs_ = std::move(pairs);
  return made;
}

std::string to_string(const LayerPairs& layer) {
  std::string text;
  for (const Pair& pair : layer.pairs()) {
    if (!text.empty()) text += '|';
    text += to_string(pair);
  }
  return text;
}

Result<LayerPairs> layer_pairs_from(std::string_view text) {
  std::vector<Pair> pairs;
  const std::vector<std::string> names = split(text, '|');
  for (const std::string& name : names) {
    KVSWEEP_ASSIGN(const Pair pair, pair_from(name));
    pairs.push_back(pair);
  }
  return LayerPairs::of_heads(std::move(pairs));
}

std::string place_of(const LayerPairs& pairs, int layer, int head) {
  std::string place = "layer " + std::to_string(layer);
  if (pairs.per_head()) place += ", KV head " + std::to_string(head);
  return place;
}

}  // namespace kvsweep
