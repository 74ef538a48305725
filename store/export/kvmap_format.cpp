#include "store/export/kvmap_format.hpp"

#include <algorithm>
#include <cmath>

#include "core/catalog/page_layout.hpp"
#include "core/json_reader.hpp"
#include "store/export/policy_json.hpp"

namespace kvsweep::store {

namespace {

constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 1024;

// Element i of a row in bits i*b .. i*b+b-1, little-endian.
std::string packing_name(int bits) {
  switch (bits) {
    case 8:
      return "byte";
    case 4:
      return "le-nibble";
    case 2:
      return "le-crumb";
    default:
      return "le-" + std::to_string(bits);
  }
}

void expect(JsonReader& reader, const char* key, const std::string& allowed) {
  const auto value = reader.optional_string(key, 64);
  if (value && *value != allowed) {
    reader.fail(key, "is \"" + *value + "\"; this version reads \"" + allowed + "\" only");
  }
}

Result<NamedFormat> read_base_format(const Json& json, JsonReader& reader,
                                     const std::string& where) {
  KVSWEEP_TRY(check_keys(json, {"codec", "type", "bits", "effective_bits"}, where));
  NamedFormat named;
  named.base = reader.take(base_type_from(reader.string("type", 16)));
  named.effective_bits = reader.number("effective_bits", 0, 64);
  const int64_t bits = reader.integer("bits", 1, 64);
  KVSWEEP_TRY(reader.done());
  if (bits != 8 * bytes_of(*named.base)) {
    return bad_input(where + ": \"bits\" is " + std::to_string(bits) + ", but " +
                     std::string(to_string(*named.base)) + " has " +
                     std::to_string(8 * bytes_of(*named.base)));
  }
  return named;
}

Result<Codec> integer_codec(int64_t bits, const std::string& where) {
  std::string allowed;
  for (const CodecInfo& codec : codecs()) {
    if (codec.name == "int" + std::to_string(codec.bits)) {
      if (codec.bits == bits) return codec.codec;
      allowed += (allowed.empty() ? "" : ", ") + std::to_string(codec.bits);
    }
  }
  return bad_input(where + ": there is no integer format of " + std::to_string(bits) +
                   " bits here; allowed are " + allowed);
}

std::vector<int64_t> per_layer(JsonReader& reader, const Json& json, const char* key, int64_t high,
                               size_t layers) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_array()) {
    return std::vector<int64_t>(layers, reader.integer(key, 1, high));
  }
  std::vector<int64_t> values = reader.integers(key, 1, high, layers);
  if (values.size() != layers) {
    reader.fail(key, "has " + std::to_string(it->size()) + " entries for " +
                         std::to_string(layers) + " layers");
    values.assign(layers, 1);
  }
  return values;
}

template <typename Field>
OrderedJson uniform_or_list(const ModelGeometry& geometry, Field field) {
  OrderedJson list = OrderedJson::array();
  bool uniform = true;
  for (const LayerGeometry& layer : geometry.layers) {
    list.push_back(field(layer));
    uniform = uniform && field(layer) == field(geometry.layers.front());
  }
  return uniform && !list.empty() ? list.front() : list;
}

}  // namespace

bool same_number(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max({1.0, std::abs(a), std::abs(b)});
}

OrderedJson format_json(const Format& format, int head_dim, BaseType base) {
  OrderedJson json;
  if (!format.quantized()) {
    json["codec"] = "none";
    json["type"] = to_string(base);
    json["bits"] = 8 * bytes_of(base);
  } else {
    const int bits = info(format.codec).bits;
    json["codec"] = "affine-int";
    json["bits"] = bits;
    json["symmetric"] = format.symmetric;
    json["axis"] = to_string(format.axis);
    json["group"] = group_json(format.group);
    json["scale"] = "fp16";
    json["zero"] = "fp16";
    json["rotation"] = "none";
    json["rope"] = "post";
    json["packing"] = packing_name(bits);
  }
  json["effective_bits"] = format_bits(format, head_dim, base);
  return json;
}

Result<NamedFormat> read_format(const Json& json, const std::string& where) {
  JsonReader reader(json, where);
  const std::string codec = reader.string("codec", 64);
  KVSWEEP_TRY(reader.done());
  if (codec == "none") return read_base_format(json, reader, where);
  if (codec != "affine-int") {
    return bad_input(where + ": \"codec\" is \"" + codec +
                     "\"; this version reads \"affine-int\" and \"none\"");
  }
  KVSWEEP_TRY(check_keys(json,
                         {"codec", "bits", "symmetric", "axis", "group", "scale", "zero",
                          "rotation", "rope", "packing", "effective_bits"},
                         where));
  NamedFormat named;
  const int64_t bits = reader.integer("bits", 1, 64);
  named.format.codec = reader.take(integer_codec(bits, where));
  named.format.axis = reader.take(read_axis(reader.string("axis", 16), where));
  named.format.group = reader.take(read_group(json.value("group", Json()), where));
  named.format.symmetric = reader.has("symmetric") && reader.boolean("symmetric");
  if (named.format.axis == Axis::channel && named.format.group == 0) {
    reader.fail("group", "is \"head\", which has no meaning along the channel axis");
  }
  expect(reader, "scale", "fp16");
  expect(reader, "zero", "fp16");
  expect(reader, "rotation", "none");
  expect(reader, "rope", "post");
  expect(reader, "packing", packing_name(static_cast<int>(bits)));
  named.effective_bits = reader.number("effective_bits", 0, 64);
  KVSWEEP_TRY(reader.done());
  return named;
}

Status check_effective_bits(const NamedFormat& named, int head_dim, const std::string& where) {
  const double computed = format_bits(named.format, head_dim, named.base.value_or(BaseType::fp16));
  if (same_number(computed, named.effective_bits)) return {};
  return bad_input(where + ": \"effective_bits\" is " + Json(named.effective_bits).dump() +
                   ", but its code, scale and zero widths give " + Json(computed).dump() +
                   "; the file was edited or its writer counts differently");
}

OrderedJson geometry_json(const ModelGeometry& geometry) {
  OrderedJson json;
  if (!geometry.family.empty()) json["family"] = geometry.family;
  json["num_layers"] = geometry.num_layers();
  OrderedJson layers = OrderedJson::array();
  for (int i = 0; i < geometry.num_layers(); ++i) layers.push_back(i);
  json["kv_layers"] = std::move(layers);
  json["kv_heads"] = uniform_or_list(geometry, [](const auto& layer) { return layer.kv_heads; });
  json["head_dim_k"] = uniform_or_list(geometry, [](const auto& layer) { return layer.head_dim; });
  json["head_dim_v"] = json["head_dim_k"];
  if (geometry.max_context > 0) json["max_context"] = geometry.max_context;
  json["kv_shared"] = OrderedJson::object();
  return json;
}

Result<ModelGeometry> read_kvmap_geometry(const Json& json, const std::string& where) {
  KVSWEEP_TRY(check_keys(json,
                         {"family", "num_layers", "kv_layers", "kv_heads", "head_dim_k",
                          "head_dim_v", "max_context", "attention", "kv_shared"},
                         where));
  JsonReader reader(json, where);
  ModelGeometry geometry;
  geometry.family = reader.optional_string("family", 64).value_or("");
  geometry.max_context =
      static_cast<int>(reader.optional_integer("max_context", 1, int64_t{1} << 30).value_or(0));
  const auto layers = static_cast<size_t>(reader.integer("num_layers", 1, kMaxLayers));
  KVSWEEP_TRY(reader.done());
  if (reader.has("kv_layers")) {
    const std::vector<int64_t> owners =
        reader.integers("kv_layers", 0, static_cast<int64_t>(layers) - 1, layers);
    for (size_t i = 0; i < layers; ++i) {
      if (i >= owners.size() || owners[i] != static_cast<int64_t>(i)) {
        reader.fail("kv_layers", "leaves out or repeats layer " + std::to_string(i) +
                                     "; this version needs keys and values in every layer");
        break;
      }
    }
  }
  if (reader.has("kv_shared")) {
    const Json* shared = reader.object("kv_shared");
    if (shared != nullptr && !shared->empty()) {
      reader.fail("kv_shared", "is not empty; this version runs no model that shares caches");
    }
  }
  const std::vector<int64_t> heads = per_layer(reader, json, "kv_heads", kMaxHeads, layers);
  const std::vector<int64_t> dim_k = per_layer(reader, json, "head_dim_k", kMaxHeadDim, layers);
  const std::vector<int64_t> dim_v = per_layer(reader, json, "head_dim_v", kMaxHeadDim, layers);
  if (dim_k != dim_v) {
    reader.fail("head_dim_v", "differs from \"head_dim_k\"; this version needs them equal");
  }
  KVSWEEP_TRY(reader.done());
  for (size_t i = 0; i < layers; ++i) {
    geometry.layers.push_back({static_cast<int>(heads[i]), static_cast<int>(dim_k[i])});
  }
  return geometry;
}

}  // namespace kvsweep::store
