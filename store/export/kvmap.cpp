// kvmap: the neutral file of a precision map (design §4.1; reference: exports.md §4).
//
// The text is indented for people; the file is cited by the hash of its canonical form
// (document_hash). map_id inside it is the identity of the map's meaning: evidence may grow
// without changing it.
#include <cmath>
#include <filesystem>
#include <map>

#include "core/catalog/page_layout.hpp"
#include "core/gguf.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "store/export/json_text.hpp"
#include "store/export/kvmap_format.hpp"
#include "store/export/kvmap_read.hpp"
#include "store/export/policy_json.hpp"
#include "store/export/registry.hpp"

namespace kvsweep::store {

namespace {

namespace fs = std::filesystem;

// Formats are named after their parts, the base type after itself; where heads differ in size
// between layers, effective bits do too, and the name says which.
class FormatNames {
 public:
  explicit FormatNames(const ExportInput& input) : input_(input) {
    for (const LayerGeometry& layer : input.geometry.layers) {
      uniform_ = uniform_ && layer.head_dim == input.geometry.layers.front().head_dim;
    }
  }

  std::string name(const Format& format, int layer) {
    const int head_dim = input_.geometry.layers[layer].head_dim;
    std::string name = format.quantized() ? to_string(format) : std::string(to_string(input_.base));
    if (!uniform_ && format.quantized()) name += "-d" + std::to_string(head_dim);
    if (!defined_.count(name)) defined_[name] = format_json(format, head_dim, input_.base);
    return name;
  }

  OrderedJson json() const {
    OrderedJson all = OrderedJson::object();
    for (const auto& [name, format] : defined_) all[name] = format;
    return all;
  }

 private:
  const ExportInput& input_;
  bool uniform_ = true;
  std::map<std::string, OrderedJson> defined_;
};

Result<OrderedJson> weights_json(const fs::path& dir) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  if (error) return io_error("cannot list " + dir.string() + ": " + error.message());
  std::sort(files.begin(), files.end());
  OrderedJson weights = OrderedJson::array();
  for (const fs::path& file : files) {
    KVSWEEP_ASSIGN(const std::string hash, sha256_file(file.string()));
    weights.push_back(OrderedJson{{"file", file.filename().string()}, {"sha256", hash}});
  }
  return weights;
}

// Binds the map to weights: a folder that holds others than the map was measured on is refused
// (exports.md §4 rule 5).
Result<std::string> bound_hash(const ExportInput& input) {
  if (input.model_dir.empty()) return input.model_hash;
  KVSWEEP_ASSIGN(const std::string hash, model_hash(input.model_dir));
  if (!input.model_hash.empty() && hash != input.model_hash) {
    return bad_input("the model in " + input.model_dir + " has the hash " + hash.substr(0, 12) +
                     ", but the map belongs to " + input.model_hash.substr(0, 12) +
                     "; give the folder of the model that the map was made for");
  }
  return hash;
}

// Where the weights lie and what they were made from; of a GGUF file one hash says all.
Status add_files(const ExportInput& input, const fs::path& path, const std::string& hash,
                 OrderedJson& model) {
  if (is_gguf_path(input.model_dir)) {
    model["weights"] =
        OrderedJson::array({OrderedJson{{"file", path.filename().string()}, {"sha256", hash}}});
    model["weight_quant"] = "gguf";
    return {};
  }
  const std::string config_path = (path / "config.json").string();
  KVSWEEP_ASSIGN(const Json config, read_json_file(config_path));
  KVSWEEP_ASSIGN(const std::string config_hash, sha256_file(config_path));
  model["config_sha256"] = config_hash;
  KVSWEEP_ASSIGN(model["weights"], weights_json(path));
  const Json quant = config.value("quantization_config", Json());
  model["weight_quant"] = quant.is_object() ? quant.value("quant_method", "unknown") : "none";
  return {};
}

Result<OrderedJson> model_json(const ExportInput& input) {
  OrderedJson model;
  KVSWEEP_ASSIGN(const std::string hash, bound_hash(input));
  if (!input.model_dir.empty()) {
    const fs::path dir = fs::path(input.model_dir).lexically_normal();
    model["id"] = (dir.filename().empty() ? dir.parent_path() : dir).filename().string();
    KVSWEEP_TRY(add_files(input, dir, hash, model));
    model["preceding_quantizers_sha256"] = nullptr;
  }
  if (!hash.empty()) model["hash"] = hash;
  return model;
}

// The name of the format, or a list with one per KV head where they differ on this side.
template <typename FormatOf>
OrderedJson side_json(const LayerPairs& pairs, int layer, FormatNames& names, FormatOf format_of) {
  OrderedJson heads = OrderedJson::array();
  bool equal = true;
  for (const Pair& pair : pairs.pairs()) {
    heads.push_back(names.name(format_of(pair), layer));
    equal = equal && heads.back() == heads.front();
  }
  return equal ? heads.front() : heads;
}

OrderedJson layers_json(const ExportInput& input, FormatNames& names) {
  OrderedJson layers = OrderedJson::array();
  for (int i = 0; i < input.map.num_layers(); ++i) {
    OrderedJson layer;
    layer["index"] = i;
    layer["module"] = "model.layers." + std::to_string(i) + ".self_attn";
    layer["type"] = "full";
    const LayerPairs& pairs = input.map.layers[static_cast<size_t>(i)];
    layer["k"] = side_json(pairs, i, names, [&](Pair pair) { return input.map.key_format(pair); });
    layer["v"] =
        side_json(pairs, i, names, [&](Pair pair) { return input.map.value_format(pair); });
    // As serving engines take them: one scale for each side of a layer.
    const Pair pair = pairs.of(0);
    const bool one = !pairs.per_head();
    if (one && input.map.key_format(pair).calibrated) {
      layer["k_scale"] = input.map.key_constant(i, pair);
    }
    if (one && input.map.value_format(pair).calibrated) {
      layer["v_scale"] = input.map.value_constant(i, pair);
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

OrderedJson cost_json(const ExportInput& input) {
  const CacheLayout layout = cache_layout(input.map, input.geometry, input.base);
  const auto bytes = static_cast<double>(layout.bytes(input.context, input.batch));
  OrderedJson cost;
  cost["nominal_bits"] = nominal_bits(input.map, input.geometry, input.base);
  cost["effective_bits"] = effective_bits(layout, input.geometry, input.context);
  cost["bytes_per_token"] = bytes / static_cast<double>(input.context * input.batch);
  cost["bytes"] = layout.bytes(input.context, input.batch);
  cost["context"] = input.context;
  cost["batch"] = input.batch;
  return cost;
}

OrderedJson search_json(const ExportInput& input) {
  OrderedJson search;
  search["tool"] = "kvsweep";
  if (input.search.is_object()) {
    for (const auto& item : input.search.items()) search[item.key()] = OrderedJson(item.value());
  }
  return search;
}

Result<OrderedJson> evidence_json(const Evidence& evidence) {
  OrderedJson json;
  json["task"] = evidence.task;
  json["split"] = evidence.split;
  json["n"] = evidence.n;
  json["metric"] = evidence.metric;
  json["kv"] = "map";
  json["codec_run"] = "engine";
  json["baseline"] = evidence.baseline;
  json["value"] = evidence.value;
  json["delta"] = evidence.value - evidence.baseline;
  if (evidence.ci) {
    json["ci"] = {evidence.ci->first, evidence.ci->second};
    json["level"] = evidence.level;
    json["method"] = evidence.method;
  }
  json["decode"] = "greedy";
  json["numerics_class"] = evidence.numerics_class;
  json["held_out"] = evidence.held_out;
  for (const auto& item : json.items()) {
    if (item.value().is_number_float() && !std::isfinite(item.value().get<double>())) {
      return Error{ErrorCode::numerics, "the evidence on task " + evidence.task + " has a \"" +
                                            item.key() + "\" that is not a finite number"};
    }
  }
  return json;
}

Result<ExportOutput> write_kvmap(const ExportInput& input) {
  if (input.context <= 0 || input.batch <= 0) {
    return bad_input("the cost of a map is counted at context " + std::to_string(input.context) +
                     " and batch " + std::to_string(input.batch) + "; both must be at least 1");
  }
  OrderedJson file;
  file["schema"] = "kvmap";
  file["schema_version"] = kKvmapVersion;
  file["must_understand"] = {"formats", "layers", "geometry", "policy"};
  // So that readers which know one format per side refuse the file by name.
  if (input.map.per_head()) file["must_understand"].push_back("head_formats");
  file["map_id"] = map_id(input.map);
  KVSWEEP_ASSIGN(file["model"], model_json(input));
  file["geometry"] = geometry_json(input.geometry);
  FormatNames names(input);
  OrderedJson layers = layers_json(input, names);
  file["formats"] = names.json();
  file["policy"] = policy_json(input.map.scheme, input.base);
  file["layers"] = std::move(layers);
  file["cost"] = cost_json(input);
  file["search"] = search_json(input);
  file["evidence"] = OrderedJson::array();
  for (const Evidence& evidence : input.evidence) {
    KVSWEEP_ASSIGN(OrderedJson json, evidence_json(evidence));
    file["evidence"].push_back(std::move(json));
  }
  file["exports"] = OrderedJson::array();
  ExportOutput output;
  output.text = pretty_json(file);
  return output;
}

// Only looks: the text may be any file.
bool recognises_kvmap(const std::string& text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos || text[start] != '{') return false;
  const Json json = Json::parse(text, nullptr, false);
  // Broken JSON that calls itself a kvmap gets the reader's message about where it breaks.
  if (json.is_discarded()) return text.find("\"kvmap\"") != std::string::npos;
  return json.value("schema", Json()) == "kvmap";
}

}  // namespace

const ExporterFunctions kvmap_functions = {write_kvmap, recognises_kvmap, read_kvmap};

}  // namespace kvsweep::store
