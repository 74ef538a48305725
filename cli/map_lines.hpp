// The lines of a map's table: one per layer, or one per KV head where the heads of a layer differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/precision_map.hpp"

namespace kvsweep::cli {

struct MapLine {
  int layer = 0;
  std::optional<int> head;  // nullopt: the line is of the whole layer
  Pair pair;
  Format keys;
  Format values;

  std::string label() const;  // "5", or "5.0" for head 0: as --map takes them
};

std::vector<MapLine> map_lines(const PrecisionMap& map);

}  // namespace kvsweep::cli
