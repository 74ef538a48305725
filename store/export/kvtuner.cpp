// KVTuner's map (cmd2001/KVTuner): a YAML file `layer: {nbits_key: N, nbits_value: N}` with integer
// keys, every layer present. It says only bits; a sidecar beside it says scheme, groups, windows
// and model (reference: exports.md §3, sensitivity.md §5).
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>

#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/json_reader.hpp"
#include "core/text.hpp"
#include "store/export/json_text.hpp"
#include "store/export/policy_json.hpp"
#include "store/export/registry.hpp"

namespace kvsweep::store {

namespace {

constexpr const char* kSidecarSchema = "kvsweep-kvtuner-sidecar";
constexpr int kMaxLayers = 4096;

std::vector<int> integer_bits() {
  std::vector<int> all;
  for (const CodecInfo& codec : codecs()) {
    if (codec.name == "int" + std::to_string(codec.bits)) all.push_back(codec.bits);
  }
  return all;
}

// Rounding an exact side down to 8 bits would say something else than the map, and KVTuner has
// nothing above 8 (exports.md §2 rule a).
Status check_integer_only(const PrecisionMap& map) {
  std::vector<std::string> layers;
  for (int i = 0; i < map.num_layers(); ++i) {
    const std::vector<Pair>& pairs = map.layers[static_cast<size_t>(i)].pairs();
    const bool integers = std::all_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
      return info(pair.k).integer() && info(pair.v).integer();
    });
    if (!integers) layers.push_back(std::to_string(i));
  }
  if (layers.empty()) return {};
  return bad_input(
      "KVTuner's YAML knows integer codes only, and this map has others (16 bits, "
      "floats) in layer" +
      std::string(layers.size() > 1 ? "s " : " ") + join(layers, ", ") +
      "; choose a map of integer codes, or export it as kvmap");
}

Codec wider(Codec a, Codec b) {
  return info(a).bits >= info(b).bits ? a : b;
}

// Per side the widest of the heads: no head is rounded down (exports.md §2 rule a).
PrecisionMap raised_to_layers(PrecisionMap map) {
  for (LayerPairs& layer : map.layers) {
    Pair widest = layer.pairs().front();
    for (const Pair& pair : layer.pairs()) {
      widest = {wider(widest.k, pair.k), wider(widest.v, pair.v)};
    }
    layer = widest;
  }
  return map;
}

// Of a map with one pair per layer.
std::string yaml_text(const PrecisionMap& map) {
  std::string text;
  for (int i = 0; i < map.num_layers(); ++i) {
    const Pair pair = map.layers[static_cast<size_t>(i)].of(0);
    text += std::to_string(i) + ": {nbits_key: " + std::to_string(info(pair.k).bits) +
            ", nbits_value: " + std::to_string(info(pair.v).bits) + "}\n";
  }
  return text;
}

Result<ExportOutput> write_kvtuner(const ExportInput& input) {
  KVSWEEP_TRY(check_integer_only(input.map));
  ExportOutput output;
  const PrecisionMap map = raised_to_layers(input.map);
  if (input.map.per_head()) {
    output.lost.push_back("pairs per KV head (each layer gets the widest of its heads)");
  }
  output.text = yaml_text(map);
  OrderedJson sidecar;
  sidecar["schema"] = kSidecarSchema;
  sidecar["schema_version"] = 1;
  sidecar["map_id"] = map_id(map);
  sidecar["yaml_sha256"] = sha256_hex(output.text);
  if (!input.model_hash.empty()) sidecar["model_hash"] = input.model_hash;
  sidecar["num_layers"] = map.num_layers();
  sidecar["policy"] = policy_json(map.scheme, input.base);
  sidecar["nominal_bits"] = nominal_bits(map, input.geometry, input.base);
  // KVTuner codes with its own quantizers: our accuracy is not theirs until measured there.
  sidecar["accuracy"] = "not_transferred";
  output.sidecar = pretty_json(sidecar);
  return output;
}

struct Sidecar {
  std::string map_id;
  std::string model_hash;
  Policy policy;
};

Result<Sidecar> read_sidecar(const ImportSource& source) {
  const std::string where = sidecar_path(source.path);
  KVSWEEP_ASSIGN(const Json json, parse_json(*source.sidecar, where));
  JsonReader reader(json, where);
  if (reader.string("schema", 64) != kSidecarSchema) {
    reader.fail("schema", std::string("must be \"") + kSidecarSchema + "\"");
  }
  reader.integer("schema_version", 1, 1);
  Sidecar sidecar;
  sidecar.map_id = reader.string("map_id", 128);
  sidecar.model_hash = reader.optional_string("model_hash", 128).value_or("");
  const Json* policy = reader.object("policy");
  KVSWEEP_TRY(reader.done());
  KVSWEEP_ASSIGN(sidecar.policy, read_policy(*policy, where + ": policy"));
  if (!sidecar.policy.scheme) return bad_input(where + ": \"policy\" has no \"scheme\"");
  return sidecar;
}

std::string at(const ImportSource& source, const YAML::Mark& mark) {
  return source.path + ":" + std::to_string(mark.line + 1);
}

Result<int> read_integer(const YAML::Node& node, const std::string& where,
                         const std::string& what) {
  int value = 0;
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return bad_input(where + ": " + what + " is " +
                     (node.IsScalar() ? "\"" + text + "\"" : std::string("not a number")) +
                     "; it must be a whole number");
  }
  return value;
}

Result<int> read_index(const ImportSource& source, const YAML::Node& key) {
  const std::string where = at(source, key.Mark());
  // yaml-cpp gives quoted scalars the tag "!".
  if (key.IsScalar() && key.Tag() == "!") {
    return bad_input(where + ": the layer number \"" + key.Scalar() +
                     "\" is in quotes; KVTuner finds integer keys only, remove the quotes");
  }
  KVSWEEP_ASSIGN(const int index, read_integer(key, where, "the layer number"));
  if (index < 0 || index >= kMaxLayers) {
    return bad_input(where + ": layer " + std::to_string(index) +
                     " is out of range; layers are 0 to " + std::to_string(kMaxLayers - 1));
  }
  return index;
}

Result<Codec> read_bits(const YAML::Node& entry, const char* key, const std::string& where) {
  const YAML::Node node = entry[key];
  if (!node.IsDefined()) return bad_input(where + " has no " + key);
  KVSWEEP_ASSIGN(const int bits, read_integer(node, where, key));
  std::vector<std::string> allowed;
  for (const int known : integer_bits()) {
    if (known == bits) return codec_from("int" + std::to_string(bits));
    allowed.push_back(std::to_string(known));
  }
  return bad_input(where + ": " + key + " is " + std::to_string(bits) + "; allowed are " +
                   join(allowed, ", "));
}

Result<Pair> read_pair(const YAML::Node& entry, const std::string& where) {
  if (!entry.IsMap()) {
    return bad_input(where +
                     " must be {nbits_key: N, nbits_value: N}; maps with a width per head "
                     "are not supported");
  }
  for (const auto& item : entry) {
    const std::string key = item.first.IsScalar() ? item.first.Scalar() : "";
    if (key != "nbits_key" && key != "nbits_value") {
      return bad_input(where + " has the key \"" + key +
                       "\"; allowed are nbits_key and nbits_value");
    }
  }
  if (entry.size() > 2) return bad_input(where + " says nbits_key or nbits_value twice");
  KVSWEEP_ASSIGN(const Codec k, read_bits(entry, "nbits_key", where));
  KVSWEEP_ASSIGN(const Codec v, read_bits(entry, "nbits_value", where));
  return Pair{k, v};
}

Result<std::vector<Pair>> read_layers(const ImportSource& source, const YAML::Node& root) {
  if (!root.IsMap() || root.size() == 0) {
    return bad_input(source.path + " must map layer numbers to {nbits_key: N, nbits_value: N}");
  }
  std::vector<std::optional<Pair>> found;
  for (const auto& item : root) {
    KVSWEEP_ASSIGN(const int index, read_index(source, item.first));
    const std::string where = at(source, item.first.Mark()) + ": layer " + std::to_string(index);
    if (static_cast<size_t>(index) >= found.size()) found.resize(index + 1);
    if (found[index]) return bad_input(where + " appears twice; keep one entry");
    KVSWEEP_ASSIGN(found[index], read_pair(item.second, where));
  }
  std::vector<Pair> layers;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) {
      return bad_input(source.path + ": layer " + std::to_string(i) + " is missing, though layer " +
                       std::to_string(found.size() - 1) + " is there; every layer must appear");
    }
    layers.push_back(*found[i]);
  }
  return layers;
}

Result<YAML::Node> parse_yaml(const ImportSource& source) {
  try {
    return YAML::Load(source.text);
  } catch (const YAML::Exception& exception) {
    return bad_input(at(source, exception.mark) + ": not valid YAML: " + exception.msg);
  }
}

Result<ImportedMap> read_kvtuner(const ImportSource& source) {
  KVSWEEP_ASSIGN(const YAML::Node root, parse_yaml(source));
  ImportedMap imported;
  KVSWEEP_ASSIGN(const std::vector<Pair> layers, read_layers(source, root));
  imported.map.layers.assign(layers.begin(), layers.end());
  imported.num_layers = imported.map.num_layers();
  if (source.scheme && source.sidecar) {
    return bad_input(sidecar_path(source.path) +
                     " says the scheme already; leave out --scheme and its options, or remove that "
                     "file to read the bits under another scheme");
  }
  if (source.scheme) {
    KVSWEEP_ASSIGN(imported.map.scheme, make_scheme(*source.scheme));
    return imported;
  }
  if (!source.sidecar) {
    return bad_input(source.path +
                     " says only bits; give the scheme they were made for with --scheme (KVTuner "
                     "has per-token and kivi), or put its sidecar beside it");
  }
  KVSWEEP_ASSIGN(const Sidecar sidecar, read_sidecar(source));
  imported.map.scheme = *sidecar.policy.scheme;
  imported.base = sidecar.policy.base;
  imported.model_hash = sidecar.model_hash;
  if (map_id(imported.map) != sidecar.map_id) {
    return bad_input(sidecar_path(source.path) + " belongs to another map than " + source.path +
                     " (the bits were edited); remove it and give --scheme");
  }
  return imported;
}

// Only looks for its words: what is wrong with the rest, the reader says.
bool recognises_kvtuner(const std::string& text) {
  return text.find("nbits_key") != std::string::npos ||
         text.find("nbits_value") != std::string::npos;
}

}  // namespace

const ExporterFunctions kvtuner_functions = {write_kvtuner, recognises_kvtuner, read_kvtuner, true};

}  // namespace kvsweep::store
