// config.json of the Llama family (LlamaForCausalLM).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/geometry.hpp"
#include "core/result.hpp"
#include "worker/model/config_fields.hpp"
#include "worker/model/rope.hpp"

namespace kvsweep::model {

struct LlamaConfig {
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float rms_eps = 1e-6f;
  int64_t max_context = 0;  // tokens
  bool tied_embeddings = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  RopeConfig rope;

  ModelGeometry geometry() const;
};

// bad_input names the field: out of range, a contradiction (heads not a multiple of kv_heads, an
// odd head_dim), or a variant that is not supported (hidden_act other than silu).
Result<LlamaConfig> read_llama_config(const ConfigFields& config);

}  // namespace kvsweep::model
