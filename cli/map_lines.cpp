#include "cli/map_lines.hpp"

namespace kvsweep::cli {

std::string MapLine::label() const {
  std::string text = std::to_string(layer);
  if (head) text += "." + std::to_string(*head);
  return text;
}

std::vector<MapLine> map_lines(const PrecisionMap& map) {
  std::vector<MapLine> lines;
  for (int layer = 0; layer < map.num_layers(); ++layer) {
    const LayerPairs& pairs = map.layers[static_cast<size_t>(layer)];
    int head = 0;
    for (const Pair& pair : pairs.pairs()) {
      const auto own = pairs.per_head() ? std::optional<int>(head++) : std::nullopt;
      lines.push_back({layer, own, pair, map.key_format(pair), map.value_format(pair)});
    }
  }
  return lines;
}

}  // namespace kvsweep::cli
