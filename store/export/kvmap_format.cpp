#include "store/export/kvmap_format.hpp"

#include <algorithm>
#include <cmath>

#include "core/catalog/page_layout.hpp"
#include "core/json_reader.hpp"
#include "core/ranges.hpp"
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

// How a file calls the codecs that are no integers.
struct FloatCodec {
  Codec codec;
  const char* name;   // of "codec"
  const char* type;   // of "type"
  const char* scale;  // of "scale"
};
constexpr FloatCodec kFloatCodecs[] = {{Codec::fp8_e4m3, "float", "e4m3", "fp16"},
                                       {Codec::fp8_e5m2, "float", "e5m2", "fp16"},
                                       {Codec::nvfp4, "nvfp4", "e2m1", "e4m3"},
                                       {Codec::mxfp4, "mxfp4", "e2m1", "e8m0"}};

const FloatCodec* float_codec(Codec codec) {
  for (const FloatCodec& entry : kFloatCodecs) {
    if (entry.codec == codec) return &entry;
  }
  return nullptr;
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

Result<Codec> named_float(const std::string& codec, const std::string& type,
                          const std::string& where) {
  for (const FloatCodec& entry : kFloatCodecs) {
    if (codec == entry.name && type == entry.type) return entry.codec;
  }
  return bad_input(where + ": codec \"" + codec + "\" has no type \"" + type +
                   "\"; \"float\" has e4m3 and e5m2, \"nvfp4\" and \"mxfp4\" have e2m1");
}

// Axis, group, rotation and size: what integers and floats have in common.
Status read_common(const Json& json, JsonReader& reader, const std::string& where,
                   NamedFormat& named) {
  named.format.axis = reader.take(read_axis(reader.string("axis", 16), where));
  named.format.group = info(named.format.codec).group;
  const Json group = json.value("group", Json());
  if (named.format.arithmetic == Arithmetic::pack11) named.format.group = kPackedTokens;
  if (named.format.group == kAnyGroup) {
    named.format.group = reader.take(read_group(group, where));
  } else if (Json(group_json(named.format.group)) != group) {
    reader.fail("group", "is " + shown(group) + "; its codec has " +
                             Json(group_json(named.format.group)).dump());
  }
  const std::string rotation = reader.optional_string("rotation", 64).value_or("none");
  if (rotation != "none" && rotation != "hadamard") {
    reader.fail("rotation", "is \"" + rotation + "\"; allowed are none and hadamard");
  }
  named.format.hadamard = rotation == "hadamard";
  expect(reader, "rope", "post");
  expect(reader, "bias", "factored");
  named.format.unbiased = reader.has("bias");
  named.effective_bits = reader.number("effective_bits", 0, 64);
  return reader.done();
}

// Where the scales of a float lie: beside the codes, or in a constant of the side.
void read_scale(JsonReader& reader, Format& format) {
  const std::string scale = reader.optional_string("scale", 64).value_or("");
  const bool constant_only = bytes_beside_constant(format.codec) == 0;
  if (scale == "constant" && takes_constant(format.codec) && constant_only) {
    format.calibrated = true;
    return;
  }
  expect(reader, "scale", float_codec(format.codec)->scale);
  if (!reader.has("tensor_scale")) return;
  if (!takes_constant(format.codec) || constant_only) {
    reader.fail("tensor_scale", "has no meaning for this codec; remove it");
    return;
  }
  expect(reader, "tensor_scale", "constant");
  format.calibrated = true;
}

Result<NamedFormat> read_float(const Json& json, const std::string& codec,
                               const std::string& where) {
  KVSWEEP_TRY(check_keys(json,
                         {"codec", "type", "bits", "axis", "group", "scale", "tensor_scale",
                          "rotation", "rope", "bias", "effective_bits"},
                         where));
  JsonReader reader(json, where);
  NamedFormat named;
  named.format.codec = reader.take(named_float(codec, reader.string("type", 16), where));
  KVSWEEP_TRY(reader.done());
  read_scale(reader, named.format);
  if (reader.integer("bits", 1, 64) != info(named.format.codec).bits) {
    reader.fail("bits", "is not " + std::to_string(info(named.format.codec).bits) +
                            ", which its codec has");
  }
  KVSWEEP_TRY(read_common(json, reader, where, named));
  return named;
}

// "scale" and "zero" of integer codes.
const char* param_type(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kvtuner:
      return "fp32";
    case Arithmetic::kvtuner_bf16:
      return "bf16";
    default:
      return "fp16";
  }
}

std::string packing_of(const Format& format) {
  if (format.arithmetic == Arithmetic::pack11) return "word-of-11";
  return packing_name(info(format.codec).bits);
}

Result<Arithmetic> read_arithmetic(JsonReader& reader, const std::string& where) {
  const std::string name = reader.optional_string("arithmetic", 64).value_or("native");
  for (const Arithmetic arithmetic :
       {Arithmetic::native, Arithmetic::kvtuner, Arithmetic::kvtuner_bf16, Arithmetic::pack11}) {
    if (to_string(arithmetic) == name) return arithmetic;
  }
  return bad_input(where + ": \"arithmetic\" is \"" + name +
                   "\"; allowed are native, kvtuner, kvtuner-bf16 and 11pack");
}

Result<NamedFormat> read_integer(const Json& json, const std::string& where) {
  KVSWEEP_TRY(check_keys(json,
                         {"codec", "arithmetic", "bits", "symmetric", "axis", "group", "scale",
                          "zero", "rotation", "rope", "packing", "bias", "effective_bits"},
                         where));
  JsonReader reader(json, where);
  NamedFormat named;
  const int64_t bits = reader.integer("bits", 1, 64);
  named.format.codec = reader.take(integer_codec(bits, where));
  named.format.symmetric = reader.has("symmetric") && reader.boolean("symmetric");
  named.format.arithmetic = reader.take(read_arithmetic(reader, where));
  const char* params = param_type(named.format.arithmetic);
  expect(reader, "scale", params);
  expect(reader, "zero", named.format.symmetric ? "none" : params);
  expect(reader, "packing", packing_of(named.format));
  KVSWEEP_TRY(read_common(json, reader, where, named));
  if (named.format.axis == Axis::channel && named.format.group == 0) {
    reader.fail("group", "is \"head\", which has no meaning along the channel axis");
  }
  KVSWEEP_TRY(reader.done());
  return named;
}

void write_integer(const Format& format, OrderedJson& json) {
  const int bits = info(format.codec).bits;
  json["codec"] = "affine-int";
  if (format.simulated()) json["arithmetic"] = to_string(format.arithmetic);
  json["bits"] = bits;
  json["symmetric"] = format.symmetric;
  json["axis"] = to_string(format.axis);
  json["group"] = group_json(format.group);
  json["scale"] = param_type(format.arithmetic);
  json["zero"] = format.symmetric ? "none" : param_type(format.arithmetic);
  json["rotation"] = format.hadamard ? "hadamard" : "none";
  json["rope"] = "post";
  json["packing"] = packing_of(format);
  if (format.unbiased) json["bias"] = "factored";
}

void write_float(const Format& format, const FloatCodec& entry, OrderedJson& json) {
  json["codec"] = entry.name;
  json["type"] = entry.type;
  json["bits"] = info(format.codec).bits;
  json["axis"] = to_string(format.axis);
  json["group"] = group_json(format.group);
  // nvfp4 stores scales beside the constant, fp8 none.
  const bool constant_only = format.calibrated && bytes_beside_constant(format.codec) == 0;
  json["scale"] = constant_only ? "constant" : entry.scale;
  if (format.calibrated && !constant_only) json["tensor_scale"] = "constant";
  json["rotation"] = format.hadamard ? "hadamard" : "none";
  json["rope"] = "post";
  if (format.unbiased) json["bias"] = "factored";
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
  } else if (const FloatCodec* entry = float_codec(format.codec)) {
    write_float(format, *entry, json);
  } else {
    write_integer(format, json);
  }
  json["effective_bits"] = format_bits(format, head_dim, base);
  return json;
}

Result<NamedFormat> read_format(const Json& json, const std::string& where) {
  JsonReader reader(json, where);
  const std::string codec = reader.string("codec", 64);
  KVSWEEP_TRY(reader.done());
  if (codec == "none") return read_base_format(json, reader, where);
  if (codec == "affine-int") return read_integer(json, where);
  for (const FloatCodec& entry : kFloatCodecs) {
    if (codec == entry.name) return read_float(json, codec, where);
  }
  return bad_input(where + ": \"codec\" is \"" + codec +
                   "\"; this version reads \"affine-int\", \"float\", \"nvfp4\", \"mxfp4\" and "
                   "\"none\"");
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
