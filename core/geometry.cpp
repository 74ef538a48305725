#include "core/geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/gguf.hpp"
#include "core/hash.hpp"
#include "core/json_reader.hpp"
#include "core/model_config.hpp"
#include "core/text.hpp"

namespace kvsweep {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxHidden = 1 << 20;
constexpr int64_t kMaxContext = int64_t{1} << 30;
constexpr double kMaxRopeFactor = 1e6;

Result<FamilyInfo> family_of(const std::vector<std::string>& architectures,
                             const std::string& path) {
  std::vector<std::string> supported;
  for (const FamilyInfo& family : families()) {
    for (const std::string& architecture : architectures) {
      if (family.architecture == architecture) return family;
    }
    supported.emplace_back(family.architecture);
  }
  return bad_input(path + ": architecture " +
                   (architectures.empty() ? "(none)" : join(architectures, ", ")) +
                   " is not supported; supported are " + join(supported, ", "));
}

int64_t head_dim_of(JsonReader& reader, const FamilyInfo& family, int64_t heads) {
  if (const auto given = reader.optional_integer("head_dim", 1, kMaxHeadDim)) return *given;
  if (family.head_dim != 0) return family.head_dim;
  const int64_t hidden = reader.integer("hidden_size", 1, kMaxHidden);
  if (hidden % heads != 0 || hidden / heads > kMaxHeadDim) {
    reader.fail("hidden_size", fmt::format("is {}; without \"head_dim\" it must be a multiple of "
                                           "\"num_attention_heads\" ({}), at most {} times as much",
                                           hidden, heads, kMaxHeadDim));
    return 1;
  }
  return hidden / heads;
}

// A null is "one per attention head" in every family.
int64_t kv_heads_of(JsonReader& reader, const FamilyInfo& family, const Json& config,
                    int64_t heads) {
  const bool absent = !config.contains("num_key_value_heads");
  const int64_t fallback = absent && family.kv_heads != 0 ? family.kv_heads : heads;
  const int64_t kv_heads =
      reader.optional_integer("num_key_value_heads", 1, kMaxHeads).value_or(fallback);
  if (heads % kv_heads != 0) {
    reader.fail("num_key_value_heads",
                fmt::format("is {}; it must divide \"num_attention_heads\" ({})", kv_heads, heads));
  }
  return kv_heads;
}

int64_t context_of(JsonReader& reader, const std::string& path) {
  const int64_t trained = reader.integer("max_position_embeddings", 1, kMaxContext);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* rope = reader.has(key) ? reader.object(key) : nullptr;
    if (rope == nullptr) continue;
    if (rope->value("rope_type", rope->value("type", Json())) != "dynamic") return trained;
    JsonReader fields(*rope, fmt::format("{}: {}", path, key));
    const double factor = fields.number("factor", 0, kMaxRopeFactor);
    if (const Status status = fields.done(); !status.ok()) reader.fail(status.error());
    return dynamic_context(trained, factor);
  }
  return trained;
}

Result<ModelGeometry> geometry_of(const Json& config, const std::string& path) {
  JsonReader reader(config, path);
  const std::vector<std::string> architectures = reader.strings("architectures", 256, 64);
  KVSWEEP_TRY(reader.done());
  KVSWEEP_ASSIGN(const FamilyInfo family, family_of(architectures, path));
  ModelGeometry geometry;
  geometry.family = family.name;

  const int64_t layers = reader.integer("num_hidden_layers", 1, kMaxLayers);
  const int64_t heads = reader.integer("num_attention_heads", 1, kMaxHeads);
  const int64_t kv_heads = kv_heads_of(reader, family, config, heads);
  const int64_t head_dim = head_dim_of(reader, family, heads);
  geometry.max_context = static_cast<int>(context_of(reader, path));
  KVSWEEP_TRY(reader.done());
  geometry.layers.assign(static_cast<size_t>(layers),
                         {static_cast<int>(kv_heads), static_cast<int>(head_dim)});
  return geometry;
}

// Names where the model came from or who wrote the file, not what it computes.
Json without_provenance(Json config) {
  for (const char* key : {"_name_or_path", "transformers_version"}) config.erase(key);
  return config;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos && name.find('\0') == std::string::npos;
}

Result<std::vector<std::string>> weight_files(const std::string& model_dir) {
  const fs::path dir(model_dir);
  std::error_code ignored;
  if (fs::exists(dir / "model.safetensors", ignored)) {
    return std::vector<std::string>{"model.safetensors"};
  }
  const std::string index = (dir / "model.safetensors.index.json").string();
  if (!fs::exists(index, ignored)) {
    return bad_input(model_dir +
                     " has no model.safetensors and no model.safetensors.index.json; point to a "
                     "Hugging Face model folder or to a .gguf file");
  }
  KVSWEEP_ASSIGN(const Json json, read_json_file(index));
  JsonReader reader(json, index);
  const Json* map = reader.object("weight_map");
  KVSWEEP_TRY(reader.done());
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>())) {
      return bad_input(index + ": tensor \"" + tensor + "\" lies in " + shown(file) +
                       ", which is not the name of a file in the same folder");
    }
    names.insert(file.get<std::string>());
  }
  if (names.empty()) return bad_input(index + ": \"weight_map\" names no file");
  return std::vector<std::string>(names.begin(), names.end());
}

// The template as the engine picks it: chat_template.jinja, else the entry of
// tokenizer_config.json, else none.
Result<std::string> chat_template_of(const fs::path& dir) {
  std::error_code ignored;
  const fs::path file = dir / "chat_template.jinja";
  if (fs::exists(file, ignored)) return sha256_file(file.string());
  const fs::path config = dir / "tokenizer_config.json";
  if (!fs::exists(config, ignored)) return std::string();
  KVSWEEP_ASSIGN(const Json json, read_json_file(config.string()));
  if (!json.is_object() || !json.contains("chat_template")) return std::string();
  const Json& entry = json["chat_template"];
  if (entry.is_string()) return sha256_hex(entry.get_ref<const std::string&>());
  KVSWEEP_ASSIGN(const std::string canonical, canonical_json(entry));
  return sha256_hex(canonical);
}

// What tokenizer_config.json changes about the ids that tokenizer.json gives; null when nothing.
Result<Json> tokenizer_settings_of(const fs::path& dir) {
  std::error_code ignored;
  const fs::path path = dir / "tokenizer_config.json";
  if (!fs::exists(path, ignored)) return Json();
  KVSWEEP_ASSIGN(const Json config, read_json_file(path.string()));
  if (!config.is_object()) return Json();
  const Json kind = config.value("tokenizer_class", Json());
  const bool llama = kind == "LlamaTokenizer" || kind == "LlamaTokenizerFast";
  if (!llama && !config.contains("add_bos_token") && !config.contains("add_eos_token"))
    return Json();
  Json settings = {{"llama", llama}};
  for (const char* key :
       {"add_bos_token", "add_eos_token", "bos_token", "eos_token", "legacy", "add_prefix_space"}) {
    settings[key] = config.value(key, Json());
  }
  return settings;
}

// Where generation ends is part of what a model computes; generation_config.json overrides
// config.json there.
Result<Json> generation_end_of(const fs::path& dir) {
  std::error_code ignored;
  const fs::path path = dir / "generation_config.json";
  if (!fs::exists(path, ignored)) return Json();
  KVSWEEP_ASSIGN(const Json json, read_json_file(path.string()));
  return json.is_object() ? json.value("eos_token_id", Json()) : Json();
}

}  // namespace

const std::vector<FamilyInfo>& families() {
  static const std::vector<FamilyInfo> kTable = {
#define KVSWEEP_FAMILY(id, architecture, kv_heads, head_dim, models, ropes, summary) \
  {#id, architecture, kv_heads, head_dim, models, ropes, summary},
#include "core/catalog/families.def"
#undef KVSWEEP_FAMILY
  };
  return kTable;
}

int64_t dynamic_context(int64_t trained, double factor) {
  const double stretched = std::floor(static_cast<double>(trained) * factor);
  return std::clamp(static_cast<int64_t>(std::min(stretched, 1e12)), trained,
                    std::max(trained, kMaxContext));
}

int64_t ModelGeometry::elements_per_token() const {
  int64_t elements = 0;
  for (const LayerGeometry& layer : layers) elements += 2LL * layer.kv_heads * layer.head_dim;
  return elements;
}

Json to_json(const ModelGeometry& geometry) {
  Json layers = Json::array();
  for (const LayerGeometry& layer : geometry.layers) {
    layers.push_back({{"kv_heads", layer.kv_heads}, {"head_dim", layer.head_dim}});
  }
  return {{"family", geometry.family},
          {"max_context", geometry.max_context},
          {"layers", std::move(layers)}};
}

Result<ModelGeometry> geometry_from_json(const Json& json) {
  JsonReader reader(json, "geometry");
  ModelGeometry geometry;
  geometry.family = reader.string("family", 64);
  geometry.max_context = static_cast<int>(reader.integer("max_context", 1, kMaxContext));
  const Json* layers = reader.array("layers", kMaxLayers);
  KVSWEEP_TRY(reader.done());
  for (const Json& item : *layers) {
    JsonReader layer(item, "geometry layer");
    const int64_t kv_heads = layer.integer("kv_heads", 1, kMaxHeads);
    const int64_t head_dim = layer.integer("head_dim", 1, kMaxHeadDim);
    KVSWEEP_TRY(layer.done());
    geometry.layers.push_back({static_cast<int>(kv_heads), static_cast<int>(head_dim)});
  }
  if (geometry.layers.empty()) return bad_input("geometry: \"layers\" must not be empty");
  return geometry;
}

Result<ModelGeometry> read_geometry(const std::string& model) {
  KVSWEEP_ASSIGN(const Json config, read_model_config(model));
  return geometry_of(config, model_config_path(model));
}

Status check_model_folder(const std::string& model_dir) {
  KVSWEEP_TRY(read_geometry(model_dir));
  if (is_gguf_path(model_dir)) return {};  // one file, and it was checked to its end
  KVSWEEP_ASSIGN(std::vector<std::string> files, weight_files(model_dir));
  files.push_back("tokenizer.json");
  for (const std::string& name : files) {
    const std::string path = (fs::path(model_dir) / name).string();
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) {
      return bad_input(path + " is missing; the model folder is incomplete, so fetch it again");
    }
  }
  return {};
}

Result<std::string> model_hash(const std::string& model_dir) {
  if (is_gguf_path(model_dir)) return sha256_file(model_dir);
  const fs::path dir(model_dir);
  KVSWEEP_ASSIGN(const Json config, read_json_file((dir / "config.json").string()));
  if (!config.is_object()) {
    return bad_input((dir / "config.json").string() + ": expected an object");
  }
  Json identity = {{"model", 1}, {"config", without_provenance(config)}};
  KVSWEEP_ASSIGN(const std::vector<std::string> files, weight_files(model_dir));
  for (const std::string& name : files) {
    KVSWEEP_ASSIGN(const std::string hash, sha256_file((dir / name).string()));
    identity["weights"].push_back({{"file", name}, {"sha256", hash}});
  }
  KVSWEEP_ASSIGN(identity["tokenizer"], sha256_file((dir / "tokenizer.json").string()));
  KVSWEEP_ASSIGN(identity["chat_template"], chat_template_of(dir));
  KVSWEEP_ASSIGN(identity["eos_token_id"], generation_end_of(dir));
  KVSWEEP_ASSIGN(const Json settings, tokenizer_settings_of(dir));
  if (!settings.is_null()) identity["tokenizer_settings"] = settings;
  KVSWEEP_ASSIGN(const std::string canonical, canonical_json(identity));
  return sha256_hex(canonical);
}

}  // namespace kvsweep
