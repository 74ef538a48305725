#include "worker/model/decoder_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvsweep::model {
namespace {

constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxVocab = 1 << 24;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxContext = 1 << 30;

FamilyInfo info_of(const std::string& family) {
  for (const FamilyInfo& info : families()) {
    if (info.name == family) return info;
  }
  return {};
}

Result<int64_t> read_head_dim(const ConfigFields& config, int64_t heads, int64_t hidden,
                              int64_t family_default) {
  if (!config.has("head_dim") && family_default == 0 && hidden % heads != 0) {
    return config.error(
        "hidden_size",
        fmt::format("is {}, not a multiple of num_attention_heads, which is {}", hidden, heads));
  }
  const int64_t fallback = family_default != 0 ? family_default : hidden / heads;
  KVSWEEP_ASSIGN(const int64_t head_dim, config.integer("head_dim", 2, kMaxHeadDim, fallback));
  if (head_dim >= 2 && head_dim <= kMaxHeadDim && head_dim % 2 == 0) return head_dim;
  const std::string allowed =
      fmt::format("RoPE needs heads of an even number of channels from 2 to {}", kMaxHeadDim);
  if (config.has("head_dim")) {
    return config.error("head_dim", fmt::format("is {}; {}", head_dim, allowed));
  }
  return config.error("hidden_size", fmt::format("is {}, which makes heads of {} channels; {}",
                                                 hidden, head_dim, allowed));
}

Status read_heads(const ConfigFields& config, DecoderConfig& out) {
  const FamilyInfo info = info_of(out.family);
  KVSWEEP_ASSIGN(const int64_t heads, config.integer("num_attention_heads", 1, kMaxHeads));
  const bool one_each = info.kv_heads == 0 || config.is_null("num_key_value_heads");
  KVSWEEP_ASSIGN(const int64_t kv_heads, config.integer("num_key_value_heads", 1, kMaxHeads,
                                                        one_each ? heads : info.kv_heads));
  if (heads % kv_heads != 0) {
    return config.error(
        "num_attention_heads",
        fmt::format("is {}, not a multiple of num_key_value_heads, which is {}", heads, kv_heads));
  }
  KVSWEEP_ASSIGN(const int64_t head_dim, read_head_dim(config, heads, out.hidden, info.head_dim));
  out.heads = static_cast<int>(heads);
  out.kv_heads = static_cast<int>(kv_heads);
  out.head_dim = static_cast<int>(head_dim);
  out.query_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
  return {};
}

Result<Activation> read_activation(const ConfigFields& config, const FamilyRules& rules) {
  KVSWEEP_ASSIGN(const std::string name, config.text(rules.activation_field, rules.activation));
  if (name == "silu") return Activation::silu;
  if (name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  return config.error(
      rules.activation_field,
      fmt::format("is \"{}\"; supported are \"silu\" and \"gelu_pytorch_tanh\"", name));
}

Status check_quantization(const ConfigFields& config) {
  if (!config.has("quantization_config")) return {};
  KVSWEEP_ASSIGN(const ConfigFields fields, config.object("quantization_config"));
  KVSWEEP_ASSIGN(const std::string method, fields.text("quant_method"));
  if (method == "awq" || method == "gptq") return {};
  return fields.error("quant_method",
                      fmt::format("is \"{}\"; supported are unquantized weights (F32, F16, BF16), "
                                  "\"awq\" and \"gptq\"",
                                  method));
}

Status check_variant(const ConfigFields& config) {
  KVSWEEP_TRY(check_quantization(config));
  KVSWEEP_TRY(refuse_true(config, "use_bidirectional_attention", "attention must be causal"));
  KVSWEEP_ASSIGN(const bool causal, config.boolean("is_causal", true));
  if (!causal) return config.error("is_causal", "is false; attention must be causal");
  return {};
}

}  // namespace

ModelGeometry DecoderConfig::geometry() const {
  ModelGeometry geometry;
  geometry.family = family;
  geometry.max_context = static_cast<int>(max_context);
  geometry.layers.assign(layers.size(), LayerGeometry{kv_heads, head_dim});
  return geometry;
}

Result<DecoderConfig> read_decoder_config(const ConfigFields& config, const std::string& family,
                                          const FamilyRules& rules) {
  DecoderConfig out;
  out.family = family;
  KVSWEEP_TRY(check_variant(config));
  KVSWEEP_ASSIGN(out.activation, read_activation(config, rules));
  KVSWEEP_ASSIGN(out.vocab, config.integer("vocab_size", 1, kMaxVocab));
  KVSWEEP_ASSIGN(out.hidden, config.integer("hidden_size", 1, kMaxWidth));
  KVSWEEP_ASSIGN(out.intermediate, config.integer("intermediate_size", 1, kMaxWidth));
  KVSWEEP_ASSIGN(const int64_t layers, config.integer("num_hidden_layers", 1, kMaxLayers));
  out.layers.resize(static_cast<size_t>(layers));
  KVSWEEP_TRY(read_heads(config, out));
  KVSWEEP_ASSIGN(const double eps, config.positive("rms_norm_eps", rules.rms_eps));
  out.rms_eps = static_cast<float>(eps);
  KVSWEEP_ASSIGN(out.max_context, config.integer("max_position_embeddings", 1, kMaxContext));
  KVSWEEP_ASSIGN(out.tied_embeddings, config.boolean("tie_word_embeddings", rules.tied_embeddings));
  return out;
}

Status read_only_rope(const ConfigFields& config, DecoderConfig& out, RopeRules rules) {
  rules.max_context = out.max_context;
  rules.head_dim = out.head_dim;
  KVSWEEP_ASSIGN(RopeConfig rope, read_rope(config, rules));
  if (rope.type == RopeType::dynamic) {
    out.max_context = dynamic_context(rope.trained_context, rope.factor);
  }
  out.ropes = {std::move(rope)};
  return {};
}

Result<std::vector<bool>> read_sliding_layers(const ConfigFields& config,
                                              std::vector<bool> otherwise) {
  if (!config.has("layer_types")) return otherwise;
  KVSWEEP_ASSIGN(const std::vector<std::string> types, config.texts("layer_types"));
  if (types.size() != otherwise.size()) {
    return config.error("layer_types", fmt::format("has {} entries, but num_hidden_layers is {}",
                                                   types.size(), otherwise.size()));
  }
  std::vector<bool> sliding;
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention") {
      return config.error("layer_types",
                          fmt::format("holds \"{}\"; supported are \"full_attention\" and "
                                      "\"sliding_attention\"",
                                      type));
    }
    sliding.push_back(type == "sliding_attention");
  }
  return sliding;
}

Result<int64_t> read_window(const ConfigFields& config, int64_t absent) {
  if (config.is_null("sliding_window")) return int64_t{0};
  if (!config.has("sliding_window")) return absent;
  return config.integer("sliding_window", 1, kMaxContext);
}

Status apply_window(const ConfigFields& config, const std::vector<bool>& sliding, int64_t window,
                    DecoderConfig& out) {
  for (size_t i = 0; i < out.layers.size(); ++i) {
    if (!sliding[i]) continue;
    if (window == 0) {
      return config.error("sliding_window", fmt::format("is not set, but layer {} has a sliding "
                                                        "window",
                                                        i));
    }
    // A window that holds the whole context is none.
    out.layers[i].window = window < out.max_context ? window : 0;
  }
  return {};
}

Status read_qwen_windows(const ConfigFields& config, DecoderConfig& out) {
  KVSWEEP_ASSIGN(const bool used, config.boolean("use_sliding_window", false));
  KVSWEEP_ASSIGN(const int64_t given, read_window(config, 4096));
  KVSWEEP_ASSIGN(const int64_t first, config.integer("max_window_layers", 0, kMaxLayers, 28));
  const int64_t window = used ? given : 0;
  std::vector<bool> usual(out.layers.size());
  for (size_t i = 0; i < usual.size(); ++i) {
    usual[i] = window > 0 && static_cast<int64_t>(i) >= first;
  }
  KVSWEEP_ASSIGN(const std::vector<bool> sliding, read_sliding_layers(config, usual));
  if (!used && std::find(sliding.begin(), sliding.end(), true) != sliding.end()) {
    return config.error("layer_types",
                        "holds \"sliding_attention\", but use_sliding_window is false");
  }
  return apply_window(config, sliding, window, out);
}

Result<float> read_cap(const ConfigFields& config, const char* name, double absent) {
  if (config.is_null(name)) return 0.0f;
  if (!config.has(name)) return static_cast<float>(absent);
  KVSWEEP_ASSIGN(const double cap, config.positive(name));
  return static_cast<float>(cap);
}

Status refuse_true(const ConfigFields& config, const char* name, const char* reason) {
  KVSWEEP_ASSIGN(const bool set, config.boolean(name, false));
  if (!set) return {};
  return config.error(name, fmt::format("is true, which is not supported: {}", reason));
}

}  // namespace kvsweep::model
