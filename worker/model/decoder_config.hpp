// What distinguishes the families that decoder.hpp computes, and the reading of the fields of
// config.json that most of them share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/geometry.hpp"
#include "core/result.hpp"
#include "worker/model/config_fields.hpp"
#include "worker/model/rope_config.hpp"

namespace kvsweep::model {

enum class Activation { silu, gelu_tanh };

// Tensors model.layers.<i>.<name>.weight; nullptr where the family has no such norm.
struct NormNames {
  const char* before_attention = "input_layernorm";
  const char* after_attention = nullptr;
  const char* before_mlp = "post_attention_layernorm";
  const char* after_mlp = nullptr;
};

// q_norm and k_norm: of each head, or of all heads together.
enum class QkNorm { none, per_head, all_heads };

struct LayerSettings {
  int64_t window = 0;  // tokens a query sees, itself included; 0: all
  int rope = 0;        // index into DecoderConfig::ropes; -1: no rotation
};

struct DecoderConfig {
  std::string family;
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int64_t max_context = 0;  // tokens
  float rms_eps = 1e-6f;
  std::vector<LayerSettings> layers;
  std::vector<RopeConfig> ropes;

  Activation activation = Activation::silu;
  NormNames norms;
  bool norm_plus_one = false;  // norms multiply by 1 + weight
  QkNorm qk_norm = QkNorm::none;
  bool qkv_bias = false;
  bool out_bias = false;
  bool mlp_bias = false;
  bool fused = false;  // the files hold qkv_proj and gate_up_proj
  bool tied_embeddings = false;

  float query_scale = 1.0f;      // multiplies q·k
  float score_cap = 0.0f;        // s becomes cap tanh(s / cap); 0: no cap
  float logit_cap = 0.0f;        // the same of logits
  float embedding_scale = 1.0f;  // multiplies embeddings

  ModelGeometry geometry() const;
};

// Where a family differs from Llama in what absent fields mean, and how fields are called.
struct FamilyRules {
  double rms_eps = 1e-6;
  bool tied_embeddings = false;
  const char* activation_field = "hidden_act";
  const char* activation = "silu";
};

// Sizes, heads, norms' eps, context and activation; a layer without window for each layer; query
// scale 1 / sqrt(head_dim). No RoPE, no biases. bad_input names the field: out of range, a
// contradiction (heads not a multiple of kv_heads, an odd head_dim), or a variant that is not
// supported.
Result<DecoderConfig> read_decoder_config(const ConfigFields& config, const std::string& family,
                                          const FamilyRules& rules = {});

// Adds one RoPE setting as ropes[0], used by all layers. Dynamic RoPE stretches the context.
Status read_only_rope(const ConfigFields& config, DecoderConfig& out, RopeRules rules = {});

// Which layers have a sliding window. `layer_types` of config.json when it is there: a list with
// "sliding_attention" or "full_attention" for each layer; else `otherwise`.
Result<std::vector<bool>> read_sliding_layers(const ConfigFields& config,
                                              std::vector<bool> otherwise);

// sliding_window; 0 when it is null, `absent` when it is not there.
Result<int64_t> read_window(const ConfigFields& config, int64_t absent);

// Sets the window of the layers that slide; bad_input when there are some and no window.
Status apply_window(const ConfigFields& config, const std::vector<bool>& sliding, int64_t window,
                    DecoderConfig& out);

// The rule of Qwen 2 and 3: use_sliding_window, sliding_window, max_window_layers, layer_types.
Status read_qwen_windows(const ConfigFields& config, DecoderConfig& out);

// A positive number; 0 when it is null, `absent` when it is not there.
Result<float> read_cap(const ConfigFields& config, const char* name, double absent);

// bad_input when the field is true.
Status refuse_true(const ConfigFields& config, const char* name, const char* reason);

}  // namespace kvsweep::model
