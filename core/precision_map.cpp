#include "core/precision_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

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

std::string bit_pattern(float value) {
  return fmt::format("{:08x}", std::bit_cast<uint32_t>(value));
}

Json pair_meaning(const PrecisionMap& map, int layer, Pair pair) {
  const Format k = map.key_format(pair);
  const Format v = map.value_format(pair);
  Json meaning = {{"k", to_string(k)}, {"v", to_string(v)}};
  if (k.calibrated) meaning["k_constant"] = bit_pattern(map.key_constant(layer, pair));
  if (v.calibrated) meaning["v_constant"] = bit_pattern(map.value_constant(layer, pair));
  return meaning;
}

Status check_ranges(const Ranges& ranges, int layers) {
  const auto count = static_cast<int>(ranges.keys.size());
  if (ranges.empty() || count == layers) return {};
  return bad_input(fmt::format(
      "the ranges of the calibrated constants are of {} layers, but the model has {}; make them "
      "for this model with `kvsweep calibrate`",
      count, layers));
}

Status check_pair(const Scheme& scheme, Pair pair, int head_dim, const std::string& place) {
  const std::string objection = scheme.objection(pair);
  if (!objection.empty()) return bad_input(place + ": " + objection);
  for (const Format& format : {scheme.key_format(pair.k), scheme.value_format(pair.v)}) {
    if (format.codec == Codec::int3) continue;  // rows are padded to whole groups of 32
    const int64_t row_bits = int64_t{head_dim} * info(format.codec).bits;
    if (row_bits % 8 != 0) {
      return bad_input(fmt::format(
          "{}: head_dim {} of {} does not fill whole bytes; choose a wider format for it", place,
          head_dim, to_string(format)));
    }
  }
  return {};
}

Status check_heads(const LayerPairs& pairs, int kv_heads, int index) {
  const auto given = static_cast<int>(pairs.pairs().size());
  if (!pairs.per_head() || given == kv_heads) return {};
  if (given < kv_heads) {
    return bad_input(fmt::format(
        "layer {}, KV head {}: the map gives a pair for {} KV heads, but the layer has {}; give "
        "each of them one",
        index, given, given, kv_heads));
  }
  return bad_input(
      fmt::format("layer {}, KV head {}: the map gives a pair for {} KV heads, but the layer has "
                  "{}; use a map made for this model",
                  index, kv_heads, given, kv_heads));
}

Status check_layer(const PrecisionMap& map, const LayerGeometry& layer, int index) {
  const LayerPairs& pairs = map.layers[static_cast<size_t>(index)];
  if (pairs.per_head() && map.scheme.info().reference()) {
    return bad_input(fmt::format(
        "layer {}: scheme {} has one pair for all KV heads of a layer, as the published code does; "
        "give the layer one pair, or take a scheme that is no reference",
        index, map.scheme.name));
  }
  KVSWEEP_TRY(check_heads(pairs, layer.kv_heads, index));
  int head = 0;
  for (const Pair& pair : pairs.pairs()) {
    KVSWEEP_TRY(check_pair(map.scheme, pair, layer.head_dim, place_of(pairs, index, head++)));
  }
  return {};
}

}  // namespace

float PrecisionMap::key_constant(int layer, Pair pair) const {
  const std::vector<float>& ranges = scheme.ranges.keys;
  if (!key_format(pair).calibrated || layer >= static_cast<int>(ranges.size())) return 0.0f;
  return constant_for(pair.k, ranges[static_cast<size_t>(layer)]);
}

float PrecisionMap::value_constant(int layer, Pair pair) const {
  const std::vector<float>& ranges = scheme.ranges.values;
  if (!value_format(pair).calibrated || layer >= static_cast<int>(ranges.size())) return 0.0f;
  return constant_for(pair.v, ranges[static_cast<size_t>(layer)]);
}

bool PrecisionMap::is_baseline() const {
  return std::all_of(layers.begin(), layers.end(),
                     [](const LayerPairs& layer) { return layer == Pair{}; });
}

bool PrecisionMap::per_head() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerPairs& layer) { return layer.per_head(); });
}

// The meaning, and nothing that does not change it: a side that no layer codes has no window, and
// a map that codes nothing has neither scheme nor policy. Layers are expanded formats, which
// carry axis and group; a layer whose heads differ lists them.
std::string map_id(const PrecisionMap& map) {
  Json meaning = {{"map", 1}, {"layers", Json::array()}};
  bool any_key = false;
  bool any_value = false;
  for (int i = 0; i < map.num_layers(); ++i) {
    const LayerPairs& layer = map.layers[static_cast<size_t>(i)];
    Json heads = Json::array();
    for (const Pair& pair : layer.pairs()) {
      any_key = any_key || pair.k != Codec::base;
      any_value = any_value || pair.v != Codec::base;
      heads.push_back(pair_meaning(map, i, pair));
    }
    meaning["layers"].push_back(layer.per_head() ? Json{{"heads", std::move(heads)}} : heads[0]);
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
  return {scheme, std::vector<LayerPairs>(static_cast<size_t>(num_layers), pair)};
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
    for (int head = 0; head < layer.kv_heads; ++head) {
      const Pair pair = map.layers[static_cast<size_t>(i)].of(head);
      bits += static_cast<double>(layer.head_dim) * (width(pair.k) + width(pair.v));
      elements += 2.0 * layer.head_dim;
    }
  }
  return elements > 0 ? bits / elements : 0;
}

Json to_json(const PrecisionMap& map) {
  Json layers = Json::array();
  for (const LayerPairs& layer : map.layers) layers.push_back(to_string(layer));
  return {{"scheme", to_json(options_of(map.scheme))}, {"layers", std::move(layers)}};
}

Result<PrecisionMap> precision_map_from_json(const Json& json) {
  JsonReader reader(json, "map");
  PrecisionMap map;
  if (const Json* scheme = reader.object("scheme")) {
    const Result<SchemeOptions> options = scheme_options_from_json(*scheme);
    map.scheme = reader.take(options.ok() ? make_scheme(*options) : options.error());
  }
  const std::vector<std::string> layers = reader.strings("layers", kMaxLayerPairsBytes, kMaxLayers);
  for (const std::string& name : layers) map.layers.push_back(reader.take(layer_pairs_from(name)));
  if (map.layers.empty()) reader.fail("layers", "must hold at least one layer");
  KVSWEEP_TRY(reader.done());
  KVSWEEP_TRY(check_ranges(map.scheme.ranges, map.num_layers()));
  return map;
}

Status check_map(const PrecisionMap& map, const ModelGeometry& geometry) {
  if (map.num_layers() != geometry.num_layers()) {
    return bad_input(
        fmt::format("the map has {} layers, but the model has {}; use a map made for this model",
                    map.num_layers(), geometry.num_layers()));
  }
  KVSWEEP_TRY(check_ranges(map.scheme.ranges, map.num_layers()));
  for (int i = 0; i < map.num_layers(); ++i) {
    KVSWEEP_TRY(check_layer(map, geometry.layers[i], i));
  }
  return {};
}

}  // namespace kvsweep
