#include "core/gguf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/gguf_rope.hpp"
#include "core/text.hpp"

namespace kvsweep {
namespace {

constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxContext = int64_t{1} << 30;

struct Architecture {
  std::string_view name;          // in GGUF
  std::string_view hugging_face;  // entry of "architectures"
  std::string_view model_type;
};
constexpr Architecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", "llama"},       {"qwen2", "Qwen2ForCausalLM", "qwen2"},
    {"qwen3", "Qwen3ForCausalLM", "qwen3"},       {"phi3", "Phi3ForCausalLM", "phi3"},
    {"gemma2", "Gemma2ForCausalLM", "gemma2"},    {"gemma3", "Gemma3ForCausalLM", "gemma3_text"},
    {"smollm3", "SmolLM3ForCausalLM", "smollm3"}, {"olmo2", "Olmo2ForCausalLM", "olmo2"},
};

// Keys behind the architecture's name whose meaning is known. Any other may change what the model
// computes, so it is refused.
constexpr std::string_view kKnownKeys[] = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.value_length",
    "attn_logit_softcapping",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "feed_forward_length",
    "final_logit_softcapping",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "tensor_data_layout",
    "vocab_size",
};

class Builder {
 public:
  Builder(const GgufFile& file, const Architecture& architecture)
      : file_(file), name_(architecture.name), architecture_(architecture) {}

  Result<Json> build();

 private:
  std::string key(std::string_view part) const { return name_ + "." + std::string(part); }
  bool has(std::string_view part) const { return file_.has(key(part)); }
  bool has_tensor(std::string_view name) const { return file_.find(name) != nullptr; }
  // config[field] = the whole number of the key.
  Status copy(const char* field, std::string_view part, int64_t high,
              std::optional<int64_t> fallback = {});

  Status check_variant() const;
  Status add_sizes();
  Status add_heads();
  Status add_vocabulary();
  Status add_tokens();
  Status add_family();
  Status add_llama();
  Status add_phi3();
  Status add_gemma2();
  Status add_gemma3();
  Status add_smollm3();
  Result<int64_t> window(int64_t fallback) const;
  int64_t integer(const char* field) const { return config_.at(field).get<int64_t>(); }
  void add_query_scale(int64_t layers_of_27b);
  void add_layer_types(int64_t period);

  const GgufFile& file_;
  std::string name_;
  const Architecture& architecture_;
  Json config_ = Json::object();
};

Status Builder::copy(const char* field, std::string_view part, int64_t high,
                     std::optional<int64_t> fallback) {
  KVSWEEP_ASSIGN(config_[field], file_.integer(key(part), 1, high, fallback));
  return {};
}

Status Builder::check_variant() const {
  KVSWEEP_ASSIGN(const int64_t experts, file_.integer(key("expert_count"), 0, 1 << 16, int64_t{0}));
  if (experts > 0) {
    return file_.error(key("expert_count"),
                       fmt::format("is {}; a mixture of experts is not supported", experts));
  }
  for (const std::string& found : file_.keys(name_ + ".")) {
    const std::string part = found.substr(name_.size() + 1);
    if (std::find(std::begin(kKnownKeys), std::end(kKnownKeys), part) == std::end(kKnownKeys)) {
      return file_.error(found,
                         "is a setting that is not known here, so the model might compute "
                         "something else; it is not run");
    }
  }
  if (name_ == "olmo2" && has("attention.sliding_window")) {
    return file_.error(key("attention.sliding_window"),
                       "is present: this is an OLMo 3, which is not supported");
  }
  return {};
}

Status Builder::add_sizes() {
  KVSWEEP_TRY(copy("hidden_size", "embedding_length", kMaxWidth));
  KVSWEEP_TRY(copy("intermediate_size", "feed_forward_length", kMaxWidth));
  KVSWEEP_TRY(copy("num_hidden_layers", "block_count", kMaxLayers));
  KVSWEEP_TRY(copy("max_position_embeddings", "context_length", kMaxContext));
  KVSWEEP_ASSIGN(config_["rms_norm_eps"], file_.number(key("attention.layer_norm_rms_epsilon")));
  return {};
}

Status Builder::add_heads() {
  KVSWEEP_TRY(copy("num_attention_heads", "attention.head_count", kMaxWidth));
  const int64_t heads = integer("num_attention_heads");
  KVSWEEP_TRY(copy("num_key_value_heads", "attention.head_count_kv", kMaxWidth, heads));
  const int64_t hidden = integer("hidden_size");
  if (!has("attention.key_length") && hidden % heads != 0) {
    return file_.error(
        key("embedding_length"),
        fmt::format("is {}; without {} it must be a multiple of {} ({})", hidden,
                    key("attention.key_length"), key("attention.head_count"), heads));
  }
  KVSWEEP_TRY(
      copy("head_dim", "attention.key_length", kMaxWidth, std::max<int64_t>(1, hidden / heads)));
  const int64_t head_dim = integer("head_dim");
  KVSWEEP_ASSIGN(const int64_t values,
                 file_.integer(key("attention.value_length"), 1, kMaxWidth, head_dim));
  if (values == head_dim) return {};
  return file_.error(
      key("attention.value_length"),
      fmt::format("is {}, but keys have {} channels; they must be equal", values, head_dim));
}

// The table of embeddings may have fewer rows than the original: llama.cpp cuts what has no token.
Status Builder::add_vocabulary() {
  const GgufTensor* table = file_.find("token_embd.weight");
  if (table == nullptr || table->shape.size() != 2) {
    return bad_input(file_.path() +
                     ": tensor token_embd.weight is missing or is no matrix; the "
                     "file holds no whole model");
  }
  config_["vocab_size"] = table->shape[0];
  config_["tie_word_embeddings"] = !has_tensor("output.weight");
  return {};
}

Status Builder::add_tokens() {
  const std::pair<const char*, const char*> kTokens[] = {
      {"bos_token_id", "tokenizer.ggml.bos_token_id"},
      {"eos_token_id", "tokenizer.ggml.eos_token_id"},
      {"pad_token_id", "tokenizer.ggml.padding_token_id"},
  };
  for (const auto& [field, from] : kTokens) {
    if (!file_.has(from)) continue;
    KVSWEEP_ASSIGN(config_[field], file_.integer(from, 0, INT32_MAX));
  }
  return {};
}

// 0 stands for none.
Result<int64_t> Builder::window(int64_t fallback) const {
  return file_.integer(key("attention.sliding_window"), 0, kMaxContext, fallback);
}

Status Builder::add_llama() {
  config_["hidden_act"] = "silu";
  KVSWEEP_ASSIGN(const int64_t size, window(0));
  if (size > 0) {
    config_["architectures"] = {"MistralForCausalLM"};
    config_["model_type"] = "mistral";
    config_["sliding_window"] = size;
    return {};
  }
  config_["attention_bias"] = has_tensor("blk.0.attn_q.bias");
  config_["mlp_bias"] = has_tensor("blk.0.ffn_gate.bias");
  return {};
}

Status Builder::add_phi3() {
  config_["hidden_act"] = "silu";
  KVSWEEP_ASSIGN(const int64_t size, window(0));
  config_["sliding_window"] = size > 0 ? Json(size) : Json();
  return {};
}

// Queries are scaled by the size of a head, but in the model of this many layers by hidden / heads.
void Builder::add_query_scale(int64_t layers_of_27b) {
  const bool large = integer("num_hidden_layers") == layers_of_27b;
  config_["query_pre_attn_scalar"] =
      large ? integer("hidden_size") / integer("num_attention_heads") : integer("head_dim");
  config_["hidden_activation"] = "gelu_pytorch_tanh";
}

// Every `period`-th layer sees everything, the others a window; 0: all see everything.
void Builder::add_layer_types(int64_t period) {
  Json types = Json::array();
  for (int64_t i = 0; i < integer("num_hidden_layers"); ++i) {
    const bool full = period == 0 || (i + 1) % period == 0;
    types.push_back(full ? "full_attention" : "sliding_attention");
  }
  config_["layer_types"] = std::move(types);
}

Status Builder::add_gemma2() {
  add_query_scale(46);
  KVSWEEP_ASSIGN(config_["attn_logit_softcapping"],
                 file_.number(key("attn_logit_softcapping"), 50.0));
  KVSWEEP_ASSIGN(config_["final_logit_softcapping"],
                 file_.number(key("final_logit_softcapping"), 30.0));
  KVSWEEP_ASSIGN(config_["sliding_window"], window(4096));
  add_layer_types(2);
  return {};
}

Status Builder::add_gemma3() {
  add_query_scale(62);
  if (has("final_logit_softcapping")) {
    KVSWEEP_ASSIGN(config_["final_logit_softcapping"],
                   file_.number(key("final_logit_softcapping")));
  }
  KVSWEEP_ASSIGN(const int64_t size, window(0));
  int64_t period = 6;
  if (has("attention.sliding_window_pattern")) {
    KVSWEEP_ASSIGN(period, file_.integer(key("attention.sliding_window_pattern"), 1, kMaxLayers));
  }
  add_layer_types(size > 0 ? period : 0);
  if (size > 0) config_["sliding_window"] = size;
  return {};
}

Status Builder::add_smollm3() {
  config_["hidden_act"] = "silu";
  config_["attention_bias"] = has_tensor("blk.0.attn_q.bias");
  config_["mlp_bias"] = has_tensor("blk.0.ffn_gate.bias");
  config_["use_sliding_window"] = false;
  Json rotating = Json::array();  // 1: the layer rotates
  for (int64_t i = 0; i < integer("num_hidden_layers"); ++i) {
    rotating.push_back((i + 1) % 4 != 0 ? 1 : 0);
  }
  config_["no_rope_layers"] = std::move(rotating);
  return {};
}

Status Builder::add_family() {
  if (name_ == "llama") return add_llama();
  if (name_ == "phi3") return add_phi3();
  if (name_ == "gemma2") return add_gemma2();
  if (name_ == "gemma3") return add_gemma3();
  if (name_ == "smollm3") return add_smollm3();
  config_["hidden_act"] = "silu";
  if (name_ == "qwen2" || name_ == "qwen3") config_["use_sliding_window"] = false;
  if (name_ != "qwen2") config_["attention_bias"] = has_tensor("blk.0.attn_q.bias");
  return {};
}

Result<Json> Builder::build() {
  KVSWEEP_TRY(check_variant());
  config_["architectures"] = {std::string(architecture_.hugging_face)};
  config_["model_type"] = architecture_.model_type;
  KVSWEEP_TRY(add_sizes());
  KVSWEEP_TRY(add_heads());
  KVSWEEP_TRY(add_vocabulary());
  KVSWEEP_TRY(add_tokens());
  KVSWEEP_TRY(add_family());
  KVSWEEP_TRY(add_gguf_rope(file_, name_, config_));
  return std::move(config_);
}

}  // namespace

std::vector<std::string> gguf_architectures() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  return names;
}

Result<Json> gguf_config(const GgufFile& file) {
  KVSWEEP_ASSIGN(const std::string kind, file.text("general.type", "model"));
  if (kind != "model") {
    return file.error("general.type",
                      fmt::format("is \"{}\"; only a whole \"model\" can be run", kind));
  }
  KVSWEEP_ASSIGN(const std::string name, file.text("general.architecture"));
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return Builder(file, architecture).build();
  }
  return file.error("general.architecture",
                    fmt::format("is \"{}\", which is not supported; supported are {}", name,
                                join(gguf_architectures(), ", ")));
}

}  // namespace kvsweep
