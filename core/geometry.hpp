// What the coordinator must know of a model to count cache bytes: read from config.json or from the
// metadata of a GGUF file, no torch. A model is given as a Hugging Face folder or as one GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep {

struct LayerGeometry {
  int kv_heads = 0;
  int head_dim = 0;  // of keys and of values
  friend bool operator==(const LayerGeometry&, const LayerGeometry&) = default;
};

struct ModelGeometry {
  std::string family;   // "llama" (core/catalog/families.def)
  int max_context = 0;  // tokens (max_position_embeddings; dynamic RoPE: times its factor)
  std::vector<LayerGeometry> layers;

  int num_layers() const { return static_cast<int>(layers.size()); }
  int64_t elements_per_token() const;  // keys and values of all layers
  friend bool operator==(const ModelGeometry&, const ModelGeometry&) = default;
};

struct FamilyInfo {
  std::string_view name;          // "llama"
  std::string_view architecture;  // entry of "architectures" in config.json
  int kv_heads = 0;               // what an absent num_key_value_heads means; 0: one per head
  int head_dim = 0;               // what an absent head_dim means; 0: hidden_size / heads
  std::string_view models;        // those that it is known under
  std::string_view ropes;         // types of RoPE that it may have
  std::string_view summary;       // what is particular
};
const std::vector<FamilyInfo>& families();  // core/catalog/families.def

// Context of a model trained on `trained` tokens whose RoPE is stretched by dynamic NTK scaling.
int64_t dynamic_context(int64_t trained, double factor);

Json to_json(const ModelGeometry& geometry);
Result<ModelGeometry> geometry_from_json(const Json& json);

// Error (bad_input) names file, field and value; an unsupported architecture is refused by name.
Result<ModelGeometry> read_geometry(const std::string& model);

// Whether everything is there that a model folder needs: a readable config.json of a supported
// family, every weight file and tokenizer.json. Looks at names only, so it is quick; `model_hash`
// reads the contents. A GGUF file must be whole and of a supported architecture.
Status check_model_folder(const std::string& model_dir);

// Identity of a model: SHA-256 over the canonical config (as the engine reads it), the names and
// SHA-256 of every weight file, tokenizer.json, what tokenizer_config.json changes about it, the
// chat template and the end-of-sequence ids of generation_config.json. `model_dir` may move. Of a
// GGUF file it is the SHA-256 of the file, as sha256sum prints it.
Result<std::string> model_hash(const std::string& model_dir);

}  // namespace kvsweep
