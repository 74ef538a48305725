#include "store/export/kvmap_read.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/catalog/page_layout.hpp"
#include "core/json.hpp"
#include "core/json_reader.hpp"
#include "core/text.hpp"
#include "store/export/json_text.hpp"
#include "store/export/kvmap_format.hpp"
#include "store/export/policy_json.hpp"

namespace kvsweep::store {

namespace {

constexpr size_t kMaxFormats = 256;
constexpr size_t kMaxEntries = 100000;

// Names of formats: one, or one per KV head.
struct LayerFormats {
  std::vector<std::string> k;
  std::vector<std::string> v;
  std::optional<double> k_scale;  // where all heads are stored alike
  std::optional<double> v_scale;

  size_t heads() const { return std::max(k.size(), v.size()); }
  const std::string& key(size_t head) const { return k[k.size() == 1 ? 0 : head]; }
  const std::string& value(size_t head) const { return v[v.size() == 1 ? 0 : head]; }
};

// Everything of the file that the map is made from.
struct File {
  std::string path;
  ModelGeometry geometry;
  std::map<std::string, NamedFormat> formats;
  Policy policy;
  std::vector<LayerFormats> layers;
};

std::string layer_label(const File& file, size_t layer) {
  return file.path + ": layer " + std::to_string(layer);
}

std::string head_label(const File& file, size_t layer, size_t head) {
  const bool one = file.layers[layer].heads() == 1;
  return layer_label(file, layer) + (one ? "" : ", KV head " + std::to_string(head));
}

Status check_head(const Json& json, const std::string& path) {
  JsonReader reader(json, path);
  if (reader.string("schema", 64) != "kvmap") reader.fail("schema", "must be \"kvmap\"");
  const int64_t version = reader.integer("schema_version", 1, int64_t{1} << 30);
  KVSWEEP_TRY(reader.done());
  if (version != kKvmapVersion) {
    return bad_input(path + ": \"schema_version\" is " + std::to_string(version) +
                     "; this kvsweep reads " + std::to_string(kKvmapVersion) +
                     ", use the newer one that wrote the file");
  }
  const std::vector<std::string> understood = {"formats", "layers", "geometry",    "policy",
                                               "model",   "cost",   "search",      "evidence",
                                               "exports", "map_id", "head_formats"};
  if (reader.has("must_understand")) {
    for (const std::string& entry : reader.strings("must_understand", 256, kMaxEntries)) {
      if (std::find(understood.begin(), understood.end(), entry) != understood.end()) continue;
      reader.fail("must_understand", "names \"" + entry +
                                         "\", which this version does not understand; reading on "
                                         "could run another map than was meant");
    }
  }
  KVSWEEP_TRY(reader.done());
  std::vector<std::string> known = understood;
  known.insert(known.end(), {"schema", "schema_version", "must_understand"});
  return check_keys(json, known, path);
}

Status read_formats(const Json& formats, File& file) {
  for (const auto& item : formats.items()) {
    const std::string where = file.path + ": format \"" + item.key() + "\"";
    KVSWEEP_ASSIGN(NamedFormat named, read_format(item.value(), where));
    if (named.base) {
      if (file.policy.base && *file.policy.base != *named.base) {
        return bad_input(where + " is " + std::string(to_string(*named.base)) +
                         ", but the baseline type of this file is " +
                         std::string(to_string(*file.policy.base)));
      }
      file.policy.base = named.base;
    }
    file.formats.emplace(item.key(), std::move(named));
  }
  return {};
}

Status check_name(const std::string& name, const char* side, const File& file,
                  const std::string& where) {
  if (file.formats.count(name)) return {};
  std::vector<std::string> known;
  for (const auto& [format, unused] : file.formats) known.push_back(format);
  const std::string near = nearest_word(name, known);
  return bad_input(where + ": \"" + side + "\" names the format \"" + name +
                   "\", which \"formats\" does not define" +
                   (near.empty() ? "" : " (did you mean \"" + near + "\"?)"));
}

// A format's name, or a list of one per KV head.
Result<std::vector<std::string>> read_side(const Json& layer, const char* side, const File& file,
                                           int64_t index) {
  const std::string where = layer_label(file, static_cast<size_t>(index));
  const auto kv_heads = static_cast<size_t>(file.geometry.layers[index].kv_heads);
  JsonReader reader(layer, where);
  const auto found = layer.find(side);
  const bool list = found != layer.end() && found->is_array();
  std::vector<std::string> names;
  if (list) {
    names = reader.strings(side, 256, kMaxEntries);
  } else {
    names.push_back(reader.string(side, 256));
  }
  KVSWEEP_TRY(reader.done());
  if (list && names.size() != kv_heads) {
    return bad_input(where + ": \"" + side + "\" lists " + std::to_string(names.size()) +
                     " formats, but the layer has " + std::to_string(kv_heads) +
                     " KV heads; give one for each, or one name for all");
  }
  for (size_t head = 0; head < names.size(); ++head) {
    const std::string place = list ? where + ", KV head " + std::to_string(head) : where;
    KVSWEEP_TRY(check_name(names[head], side, file, place));
  }
  return names;
}

Status read_layer(const Json& layer, File& file, std::vector<bool>& seen) {
  JsonReader reader(layer, file.path + ": an entry of \"layers\"");
  const int64_t index = reader.integer("index", 0, file.geometry.num_layers() - 1);
  KVSWEEP_TRY(reader.done());
  const std::string where = layer_label(file, static_cast<size_t>(index));
  KVSWEEP_TRY(
      check_keys(layer, {"index", "module", "type", "k", "v", "k_scale", "v_scale"}, where));
  if (seen[index]) return bad_input(where + " appears twice in \"layers\"; keep one entry");
  seen[index] = true;
  if (layer.contains("type") && layer["type"] != "full") {
    return bad_input(where + ": \"type\" is " + shown(layer["type"]) +
                     "; this version runs layers of full attention only");
  }
  KVSWEEP_ASSIGN(file.layers[index].k, read_side(layer, "k", file, index));
  KVSWEEP_ASSIGN(file.layers[index].v, read_side(layer, "v", file, index));
  JsonReader scales(layer, where);
  file.layers[index].k_scale = scales.optional_number("k_scale", 0, 1e38);
  file.layers[index].v_scale = scales.optional_number("v_scale", 0, 1e38);
  return scales.done();
}

Status read_layers(const Json& layers, File& file) {
  file.layers.resize(file.geometry.layers.size());
  std::vector<bool> seen(file.layers.size(), false);
  for (const Json& layer : layers) KVSWEEP_TRY(read_layer(layer, file, seen));
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) {
      return bad_input(layer_label(file, i) + " is missing from \"layers\"; a map says a format " +
                       "for each of the " + std::to_string(seen.size()) + " layers");
    }
  }
  return {};
}

Status check_bits(const File& file) {
  std::set<std::string> used;
  for (size_t i = 0; i < file.layers.size(); ++i) {
    for (const std::vector<std::string>& names : {file.layers[i].k, file.layers[i].v}) {
      for (const std::string& name : names) {
        used.insert(name);
        KVSWEEP_TRY(check_effective_bits(file.formats.at(name), file.geometry.layers[i].head_dim,
                                         layer_label(file, i) + ": format \"" + name + "\""));
      }
    }
  }
  for (const auto& [name, named] : file.formats) {
    if (used.count(name)) continue;
    KVSWEEP_TRY(check_effective_bits(named, file.geometry.layers.front().head_dim,
                                     file.path + ": format \"" + name + "\""));
  }
  return {};
}

// The scheme that a file of another tool implies: the one whose axes its formats have.
Result<Scheme> implied_scheme(const File& file) {
  std::optional<Format> k;
  std::optional<Format> v;
  for (const LayerFormats& layer : file.layers) {
    for (size_t head = 0; head < layer.heads(); ++head) {
      const Format& key = file.formats.at(layer.key(head)).format;
      const Format& value = file.formats.at(layer.value(head)).format;
      if (key.quantized() && !k) k = key;
      if (value.quantized() && !v) v = value;
    }
  }
  SchemeOptions options;
  options.residual = file.policy.residual;
  options.sinks = file.policy.sinks;
  options.prefill = file.policy.prefill;
  if (k && k->unbiased) options.key_bias = KeyBias::factored;
  options.symmetric = (k && k->symmetric) || (v && v->symmetric);
  const bool rotated_keys = k && k->hadamard;
  const bool rotated_values = v && v->hadamard;
  options.hadamard = rotated_keys ? (rotated_values ? Hadamard::both : Hadamard::keys)
                                  : (rotated_values ? Hadamard::values : Hadamard::none);
  for (const SchemeInfo& scheme : schemes()) {
    if ((k && k->axis != scheme.k_axis) || (v && v->axis != scheme.v_axis)) continue;
    options.name = scheme.name;
    for (const auto& side : {k, v}) {
      if (side && !options.group && info(side->codec).group == kAnyGroup)
        options.group = side->group;
    }
    const auto made = make_scheme(options);
    if (!made.ok()) return bad_input(file.path + ": \"policy\": " + made.error().message);
    return *made;
  }
  return bad_input(file.path + ": no scheme here has keys per " +
                   std::string(k ? to_string(k->axis) : "token") + " and values per " +
                   std::string(v ? to_string(v->axis) : "token"));
}

Status check_side(const Format& said, const Format& expected, const char* side,
                  const std::string& name, const std::string& where) {
  if (said == expected) return {};
  return bad_input(where + ": \"" + side + "\" is \"" + name + "\" (" + to_string(said) +
                   "), but the scheme makes it " + to_string(expected) +
                   "; axis, group, symmetry and rotation are one for all layers of a side");
}

// A calibrated side needs its range, never an assumed one, and the scale that engines read must be
// the one that follows from it.
Status check_scale(const Format& format, const std::optional<double>& said, float constant,
                   const std::string& where) {
  if (!format.calibrated && said) return bad_input(where + " is given, but its format has none");
  if (!format.calibrated) return {};
  if (constant == 0) {
    return bad_input(where + " of " + to_string(format) +
                     " needs a calibrated constant, but policy.scheme.ranges has none for it; "
                     "export the map again with ranges of `kvsweep calibrate`");
  }
  if (!said || *said == static_cast<double>(constant)) return {};
  return bad_input(where + " is " + Json(*said).dump() + ", but policy.scheme.ranges gives " +
                   Json(static_cast<double>(constant)).dump() + "; the file was edited");
}

Status check_scales(const PrecisionMap& map, int index, Pair pair, const LayerFormats& layer,
                    const std::string& where) {
  KVSWEEP_TRY(check_scale(map.key_format(pair), layer.k_scale, map.key_constant(index, pair),
                          where + ": \"k_scale\""));
  return check_scale(map.value_format(pair), layer.v_scale, map.value_constant(index, pair),
                     where + ": \"v_scale\"");
}

// Without ranges no scheme makes a calibrated format, so that says what is missing.
Status check_ranges_given(const Format& format, const Scheme& scheme, const std::string& where) {
  if (!scheme.ranges.empty()) return {};
  return check_scale(format, {}, 0, where);
}

Result<LayerPairs> build_layer(const File& file, size_t index, const PrecisionMap& map) {
  const LayerFormats& layer = file.layers[index];
  const Scheme& scheme = map.scheme;
  std::vector<Pair> pairs;
  for (size_t head = 0; head < layer.heads(); ++head) {
    const Format& k = file.formats.at(layer.key(head)).format;
    const Format& v = file.formats.at(layer.value(head)).format;
    const std::string where = head_label(file, index, head);
    KVSWEEP_TRY(check_ranges_given(k, scheme, where + ": \"k_scale\""));
    KVSWEEP_TRY(check_ranges_given(v, scheme, where + ": \"v_scale\""));
    KVSWEEP_TRY(check_side(k, scheme.key_format(k.codec), "k", layer.key(head), where));
    KVSWEEP_TRY(check_side(v, scheme.value_format(v.codec), "v", layer.value(head), where));
    pairs.push_back({k.codec, v.codec});
    KVSWEEP_TRY(check_scales(map, static_cast<int>(index), pairs.back(), layer, where));
  }
  return LayerPairs::of_heads(std::move(pairs));
}

Result<PrecisionMap> build_map(const File& file) {
  PrecisionMap map;
  if (file.policy.scheme) {
    map.scheme = *file.policy.scheme;
  } else {
    KVSWEEP_ASSIGN(map.scheme, implied_scheme(file));
  }
  for (size_t i = 0; i < file.layers.size(); ++i) {
    KVSWEEP_ASSIGN(LayerPairs layer, build_layer(file, i, map));
    map.layers.push_back(std::move(layer));
  }
  return map;
}

Status compare(double said, double computed, const char* field, const std::string& where) {
  if (same_number(said, computed)) return {};
  return bad_input(where + ": \"" + field + "\" is " + Json(said).dump() +
                   ", but the layers give " + Json(computed).dump() +
                   "; the file was edited or its writer counts differently");
}

// Mean of the formats' bits: what a file means that does not say at which context it counts.
double mean_format_bits(const File& file) {
  double bits = 0;
  for (size_t i = 0; i < file.layers.size(); ++i) {
    const LayerGeometry& layer = file.geometry.layers[i];
    for (const std::vector<std::string>& names : {file.layers[i].k, file.layers[i].v}) {
      const double each =
          static_cast<double>(layer.kv_heads) * layer.head_dim / static_cast<double>(names.size());
      for (const std::string& name : names) {
        const NamedFormat& named = file.formats.at(name);
        bits +=
            each * format_bits(named.format, layer.head_dim, named.base.value_or(BaseType::fp16));
      }
    }
  }
  return bits / static_cast<double>(file.geometry.elements_per_token());
}

Status check_cost(const Json& cost, const PrecisionMap& map, const File& file) {
  const std::string where = file.path + ": cost";
  KVSWEEP_TRY(check_keys(
      cost, {"nominal_bits", "effective_bits", "bytes_per_token", "bytes", "context", "batch"},
      where));
  JsonReader reader(cost, where);
  const auto nominal = reader.optional_number("nominal_bits", 0, 64);
  const auto effective = reader.optional_number("effective_bits", 0, 1e9);
  const auto context = reader.optional_integer("context", 1, int64_t{1} << 40);
  KVSWEEP_TRY(reader.done());
  const BaseType base = file.policy.base.value_or(BaseType::fp16);
  if (nominal) {
    KVSWEEP_TRY(compare(*nominal, nominal_bits(map, file.geometry, base), "nominal_bits", where));
  }
  if (!effective) return {};
  if (!context) return compare(*effective, mean_format_bits(file), "effective_bits", where);
  // Window and staging are counted in the base type, which the file must then say.
  if (!file.policy.base) return {};
  const CacheLayout layout = cache_layout(map, file.geometry, base);
  return compare(*effective, effective_bits(layout, file.geometry, *context), "effective_bits",
                 where);
}

Result<std::string> read_model_hash(const Json* model, const std::string& path) {
  if (model == nullptr) return std::string();
  KVSWEEP_TRY(check_keys(*model,
                         {"id", "revision", "hash", "config_sha256", "weights", "weight_quant",
                          "preceding_quantizers_sha256"},
                         path + ": model"));
  JsonReader reader(*model, path + ": model");
  std::string hash = reader.optional_string("hash", 128).value_or("");
  KVSWEEP_TRY(reader.done());
  return hash;
}

Status check_map_id(JsonReader& reader, const PrecisionMap& map, const std::string& path) {
  const auto said = reader.optional_string("map_id", 128);
  KVSWEEP_TRY(reader.done());
  const std::string computed = map_id(map);
  if (!said || *said == computed) return {};
  return bad_input(path + ": \"map_id\" is " + said->substr(0, 16) + "..., but the map has " +
                   computed.substr(0, 16) + "...; the file was edited after it was written");
}

}  // namespace

Result<ImportedMap> read_kvmap(const ImportSource& source) {
  const std::string& path = source.path;
  KVSWEEP_ASSIGN(const Json json, parse_json(source.text, path));
  KVSWEEP_TRY(check_head(json, path));
  JsonReader reader(json, path);
  const Json* model = reader.object("model", true);
  const Json* geometry = reader.object("geometry");
  const Json* formats = reader.object("formats");
  const Json* policy = reader.object("policy");
  const Json* layers = reader.array("layers", kMaxEntries);
  const Json* cost = reader.object("cost", true);
  reader.object("search", true);
  reader.array("evidence", kMaxEntries, true);
  reader.array("exports", kMaxEntries, true);
  KVSWEEP_TRY(reader.done());
  if (formats->size() > kMaxFormats) {
    return bad_input(path + ": \"formats\" has " + std::to_string(formats->size()) +
                     " entries; at most " + std::to_string(kMaxFormats) + " are allowed");
  }
  File file;
  file.path = path;
  KVSWEEP_ASSIGN(file.geometry, read_kvmap_geometry(*geometry, path + ": geometry"));
  KVSWEEP_ASSIGN(file.policy, read_policy(*policy, path + ": policy"));
  KVSWEEP_TRY(read_formats(*formats, file));
  KVSWEEP_TRY(read_layers(*layers, file));
  KVSWEEP_TRY(check_bits(file));
  ImportedMap imported;
  KVSWEEP_ASSIGN(imported.map, build_map(file));
  if (cost != nullptr) KVSWEEP_TRY(check_cost(*cost, imported.map, file));
  KVSWEEP_TRY(check_map_id(reader, imported.map, path));
  KVSWEEP_ASSIGN(imported.model_hash, read_model_hash(model, path));
  imported.num_layers = file.geometry.num_layers();
  imported.base = file.policy.base;
  imported.geometry = std::move(file.geometry);
  return imported;
}

}  // namespace kvsweep::store
