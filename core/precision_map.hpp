// PrecisionMap: total function (layer, KV head) -> pair, plus scheme.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/format.hpp"
#include "core/geometry.hpp"
#include "core/json.hpp"
#include "core/layer_pairs.hpp"
#include "core/result.hpp"
#include "core/scheme.hpp"

namespace kvsweep {

struct PrecisionMap {
  Scheme scheme;
  std::vector<LayerPairs> layers;  // index = layer

  int num_layers() const { return static_cast<int>(layers.size()); }
  Format key_format(Pair pair) const { return scheme.key_format(pair.k); }
  Format value_format(Pair pair) const { return scheme.value_format(pair.v); }
  // Of a side of this layer, or of one of its KV heads, whose format is calibrated; else 0, as
  // where the ranges lack the layer (check_map).
  float key_constant(int layer, Pair pair) const;
  float value_constant(int layer, Pair pair) const;
  bool is_baseline() const;  // every side in the base type
  bool per_head() const;     // some layer has a pair per KV head
  friend bool operator==(const PrecisionMap&, const PrecisionMap&) = default;
};

// SHA-256 of the canonical meaning (design §1): scheme, policy, the expanded formats of every
// layer, or of every KV head where they differ, and, as fp32 bit patterns, the calibrated constants
// that they use; no names, model or evidence. A map whose sides are all `base` has one id whatever
// its scheme, since the scheme then changes nothing.
std::string map_id(const PrecisionMap& map);

PrecisionMap uniform_map(const Scheme& scheme, int num_layers, Pair pair);
PrecisionMap baseline_map(const Scheme& scheme, int num_layers);

// "K8V4", "K8V4 x3, K2V2" (runs of equal layers), "K8V4|K4V2, K2V2" (a pair per KV head), for
// tables.
std::string summary(const PrecisionMap& map);

// Mean code bits per element; the base type counts its own width.
double nominal_bits(const PrecisionMap& map, const ModelGeometry& geometry, BaseType base);

// The form that travels over the wire: the options of the scheme and the layers' pairs as
// to_string(LayerPairs) has them. (The file users exchange is kvmap, store/export.)
Json to_json(const PrecisionMap& map);
Result<PrecisionMap> precision_map_from_json(const Json& json);

// Error (bad_input) when the map's layer count is not the model's, when a layer has not one pair
// for each of its KV heads, or when a format cannot hold on this geometry (head_dim not divisible
// by the elements of a byte ...); names the layer, and the KV head where heads differ.
Status check_map(const PrecisionMap& map, const ModelGeometry& geometry);

}  // namespace kvsweep
