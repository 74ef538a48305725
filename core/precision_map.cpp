#include "core/precision_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/hash.hpp"
#include "core/json_reader.hpp"

namespace kvsweep {
namespace {

constexpr size_t kMaxLayers = 4096;
constexpr int kMaxWindow = 65536;

Json to_json(const Window& window) {
  return {{"keep", window.keep}, {"block", window.block}};
}

Window window_from_json(JsonReader& parent, std::string_view key) {
  const Json* json = parent.object(key);
  if (json == nullptr) return {};
  JsonReader reader(*json, "window " + std::string(key));
  Window window;
  window.keep = static_cast<int>(reader.integer("keep", 0, kMaxWindow));
  window.block = static_cast<int>(reader.integer("block", 1, kMaxWindow));
  if (const Status status = reader.done(); !status.ok()) parent.fail(status.error());
  return window;
}

Axis axis_from_json(JsonReader& reader, std::string_view key) {
  const std::string name = reader.string(key, 16);
  if (name != "token" && name != "channel") reader.fail(key, "must be token or channel");
  return name == "channel" ? Axis::channel : Axis::token;
}

int group_from_json(JsonReader& reader, std::string_view key) {
  const int64_t group = reader.integer(key, 0, 128);
  if (group != 0 && group != 32 && group != 64 && group != 128) {
    reader.fail(key, fmt::format("is {}; it must be 0 (whole head), 32, 64 or 128", group));
  }
  return static_cast<int>(group);
}

// What codec and cache rely on: a side coded per channel is coded in whole groups.
void check_side(JsonReader& reader, Axis axis, int group, const Window& window,
                std::string_view key) {
  if (axis == Axis::token) return;
  if (group == 0 || window.block % group != 0) {
    reader.fail(key, "has a window that is not a multiple of its channel group");
  }
}

Result<Scheme> scheme_from_json(const Json& json) {
  JsonReader reader(json, "scheme");
  Scheme scheme;
  scheme.name = reader.string("name", 64);
  const bool known = std::any_of(schemes().begin(), schemes().end(),
                                 [&](const SchemeInfo& info) { return info.name == scheme.name; });
  if (!known) reader.fail("name", "is \"" + scheme.name + "\", which this version does not know");
  scheme.k_axis = axis_from_json(reader, "k_axis");
  scheme.v_axis = axis_from_json(reader, "v_axis");
  scheme.k_group = group_from_json(reader, "k_group");
  scheme.v_group = group_from_json(reader, "v_group");
  scheme.k = window_from_json(reader, "k");
  scheme.v = window_from_json(reader, "v");
  scheme.residual = static_cast<int>(reader.integer("residual", 0, kMaxWindow));
  scheme.prefill = reader.take(prefill_from(reader.string("prefill", 16)));
  check_side(reader, scheme.k_axis, scheme.k_group, scheme.k, "k");
  check_side(reader, scheme.v_axis, scheme.v_group, scheme.v, "v");
  KVSWEEP_TRY(reader.done());
  return scheme;
}

Json to_json(const Scheme& scheme) {
  return {{"name", scheme.name},
          {"k_axis", to_string(scheme.k_axis)},
          {"v_axis", to_string(scheme.v_axis)},
          {"k_group", scheme.k_group},
          {"v_group", scheme.v_group},
          {"k", to_json(scheme.k)},
          {"v", to_json(scheme.v)},
          {"residual", scheme.residual},
          {"prefill", to_string(scheme.prefill)}};
}

Status check_layer(const PrecisionMap& map, const LayerGeometry& layer, int index) {
  for (const Format& format : {map.key_format(index), map.value_format(index)}) {
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
  }
  if (any_key) meaning["k_window"] = to_json(map.scheme.k);
  if (any_value) meaning["v_window"] = to_json(map.scheme.v);
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
  return {{"scheme", to_json(map.scheme)}, {"layers", std::move(layers)}};
}

Result<PrecisionMap> precision_map_from_json(const Json& json) {
  JsonReader reader(json, "map");
  PrecisionMap map;
  if (const Json* scheme = reader.object("scheme")) {
    map.scheme = reader.take(scheme_from_json(*scheme));
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
