#include "core/precision_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/hash.hpp"
#include "core/json_reader.hpp"

namespace kvsweep {
namespace {

constexpr size_t kMaxLayers = 4096;

// What a window means, with nothing that its rule does not look at.
Json window_meaning(const Scheme& scheme, const Window& window) {
  switch (window.rule) {
    case WindowRule::tokens:
      return {{"keep", window.keep}, {"block", window.block}};
    case WindowRule::window_share:
      return {{"rule", "window_share"}, {"block", window.block}, {"share", scheme.share}};
    case WindowRule::recode:
      return {{"rule", "recode"}, {"block", window.block}};
    case WindowRule::total_share:
      break;
  }
  return {{"rule", "total_share"}, {"block", window.block}, {"share", scheme.share}};
}

Status check_layer(const PrecisionMap& map, const LayerGeometry& layer, int index) {
  const std::string objection = map.scheme.objection(map.layers[static_cast<size_t>(index)]);
  if (!objection.empty()) return bad_input(fmt::format("layer {}: {}", index, objection));
  for (const Format& format : {map.key_format(index), map.value_format(index)}) {
    if (format.codec == Codec::int3) continue;  // rows are padded to whole groups of 32
    const int64_t row_bits = int64_t{layer.head_dim} * info(format.codec).bits;
    if (row_bits % 8 != 0) {
      return bad_input(fmt::format(
          "layer {}: head_dim {} of {} does not fill whole bytes; choose a wider format for it",
          index, layer.head_dim, to_string(format)));
    }
  }
  return {};
}

}  // namespace

bool PrecisionMap::is_baseline() const {
  return std::all_of(layers.begin(), layers.end(), [](const Pair& pair) { return pair == Pair{}; });
}

// The meaning, and nothing that does not change it: a side that no layer codes has no window, and
// a map that codes nothing has neither scheme nor policy. Layers are expanded formats, which
// carry axis and group.
std::string map_id(const PrecisionMap& map) {
  Json meaning = {{"map", 1}, {"layers", Json::array()}};
  bool any_key = false;
  bool any_value = false;
  for (int i = 0; i < map.num_layers(); ++i) {
    const Format k = map.key_format(i);
    const Format v = map.value_format(i);
    any_key = any_key || k.quantized();
    any_value = any_value || v.quantized();
    meaning["layers"].push_back({{"k", to_string(k)}, {"v", to_string(v)}});
  }
  if (any_key || any_value) {
    meaning["scheme"] = map.scheme.name;
    meaning["prefill"] = to_string(map.scheme.prefill);
    if (map.scheme.sinks > 0) meaning["sinks"] = map.scheme.sinks;
  }
  if (any_key) {
    meaning["k_window"] = window_meaning(map.scheme, map.scheme.key_window(Codec::int8));
  }
  if (any_value) {
    meaning["v_window"] = window_meaning(map.scheme, map.scheme.value_window(Codec::int8));
  }
  return sha256_hex(canonical_json(meaning).value());
}

PrecisionMap uniform_map(const Scheme& scheme, int num_layers, Pair pair) {
  return {scheme, std::vector<Pair>(static_cast<size_t>(num_layers), pair)};
}

PrecisionMap baseline_map(const Scheme& scheme, int num_layers) {
  return uniform_map(scheme, num_layers, Pair{});
}

std::string summary(const PrecisionMap& map) {
  std::string text;
  for (size_t i = 0; i < map.layers.size();) {
    size_t end = i + 1;
    while (end < map.layers.size() && map.layers[end] == map.layers[i]) ++end;
    if (!text.empty()) text += ", ";
    text += to_string(map.layers[i]);
    const bool whole = i == 0 && end == map.layers.size();
    if (end - i > 1 && !whole) text += fmt::format(" x{}", end - i);
    i = end;
  }
  return text;
}

double nominal_bits(const PrecisionMap& map, const ModelGeometry& geometry, BaseType base) {
  double bits = 0;
  double elements = 0;
  const auto width = [&](Codec codec) {
    return codec == Codec::base ? 8 * bytes_of(base) : info(codec).bits;
  };
  for (int i = 0; i < map.num_layers(); ++i) {
    const LayerGeometry& layer = geometry.layers[i];
    const double side = static_cast<double>(layer.kv_heads) * layer.head_dim;
    bits += side * (width(map.layers[i].k) + width(map.layers[i].v));
    elements += 2 * side;
  }
  return elements > 0 ? bits / elements : 0;
}

Json to_json(const PrecisionMap& map) {
  Json layers = Json::array();
  for (const Pair& pair : map.layers) layers.push_back(to_string(pair));
  return {{"scheme", to_json(options_of(map.scheme))}, {"layers", std::move(layers)}};
}

Result<PrecisionMap> precision_map_from_json(const Json& json) {
  JsonReader reader(json, "map");
  PrecisionMap map;
  if (const Json* scheme = reader.object("scheme")) {
    const Result<SchemeOptions> options = scheme_options_from_json(*scheme);
    map.scheme = reader.take(options.ok() ? make_scheme(*options) : options.error());
  }
  const std::vector<std::string> layers = reader.strings("layers", 16, kMaxLayers);
  for (const std::string& name : layers) map.layers.push_back(reader.take(pair_from(name)));
  if (map.layers.empty()) reader.fail("layers", "must hold at least one layer");
  KVSWEEP_TRY(reader.done());
  return map;
}

Status check_map(const PrecisionMap& map, const ModelGeometry& geometry) {
  if (map.num_layers() != geometry.num_layers()) {
    return bad_input(
        fmt::format("the map has {} layers, but the model has {}; use a map made for this model",
                    map.num_layers(), geometry.num_layers()));
  }
  for (int i = 0; i < map.num_layers(); ++i) {
    KVSWEEP_TRY(check_layer(map, geometry.layers[i], i));
  }
  return {};
}

}  // namespace kvsweep
