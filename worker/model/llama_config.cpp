#include "worker/model/llama_config.hpp"

#include <fmt/format.h>

namespace kvsweep::model {
namespace {

constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxVocab = 1 << 24;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxContext = 1 << 28;

Status read_heads(const ConfigFields& config, LlamaConfig& out) {
  KVSWEEP_ASSIGN(const int64_t heads, config.integer("num_attention_heads", 1, kMaxWidth));
  KVSWEEP_ASSIGN(const int64_t kv_heads,
                 config.integer("num_key_value_heads", 1, kMaxWidth, heads));
  if (heads % kv_heads != 0) {
    return config.error(
        "num_attention_heads",
        fmt::format("is {}, not a multiple of num_key_value_heads, which is {}", heads, kv_heads));
  }
  if (!config.has("head_dim") && out.hidden % heads != 0) {
    return config.error("hidden_size",
                        fmt::format("is {}, not a multiple of num_attention_heads, which is {}",
                                    out.hidden, heads));
  }
  KVSWEEP_ASSIGN(const int64_t head_dim, config.integer("head_dim", 2, 4096, out.hidden / heads));
  if (head_dim < 2 || head_dim % 2 != 0) {
    return config.error("head_dim", fmt::format("is {}; RoPE needs an even number", head_dim));
  }
  out.heads = static_cast<int>(heads);
  out.kv_heads = static_cast<int>(kv_heads);
  out.head_dim = static_cast<int>(head_dim);
  return {};
}

Status check_variant(const ConfigFields& config) {
  KVSWEEP_ASSIGN(const std::string act, config.text("hidden_act", "silu"));
  if (act != "silu") {
    return config.error("hidden_act", fmt::format("is \"{}\"; only \"silu\" is supported", act));
  }
  return {};
}

}  // namespace

ModelGeometry LlamaConfig::geometry() const {
  ModelGeometry geometry;
  geometry.family = "llama";
  geometry.max_context = static_cast<int>(max_context);
  geometry.layers.assign(static_cast<size_t>(layers), LayerGeometry{kv_heads, head_dim});
  return geometry;
}

Result<LlamaConfig> read_llama_config(const ConfigFields& config) {
  LlamaConfig out;
  KVSWEEP_TRY(check_variant(config));
  KVSWEEP_ASSIGN(out.vocab, config.integer("vocab_size", 1, kMaxVocab));
  KVSWEEP_ASSIGN(out.hidden, config.integer("hidden_size", 1, kMaxWidth));
  KVSWEEP_ASSIGN(out.intermediate, config.integer("intermediate_size", 1, kMaxWidth));
  KVSWEEP_ASSIGN(const int64_t layers, config.integer("num_hidden_layers", 1, kMaxLayers));
  out.layers = static_cast<int>(layers);
  KVSWEEP_TRY(read_heads(config, out));
  KVSWEEP_ASSIGN(const double eps, config.positive("rms_norm_eps", 1e-6));
  out.rms_eps = static_cast<float>(eps);
  KVSWEEP_ASSIGN(out.max_context, config.integer("max_position_embeddings", 1, kMaxContext, 2048));
  KVSWEEP_ASSIGN(out.tied_embeddings, config.boolean("tie_word_embeddings", false));
  KVSWEEP_ASSIGN(out.attention_bias, config.boolean("attention_bias", false));
  KVSWEEP_ASSIGN(out.mlp_bias, config.boolean("mlp_bias", false));
  KVSWEEP_ASSIGN(out.rope, read_rope(config, out.max_context));
  return out;
}

}  // namespace kvsweep::model
