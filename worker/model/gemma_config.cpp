#include "worker/model/gemma_config.hpp"

#include <cmath>

namespace kvsweep::model {

// Embeddings are multiplied by sqrt(hidden) in the compute type: transformers casts that number to
// the type of its weights, which here are fp32 whatever type the file has.
Result<DecoderConfig> read_gemma_config(const ConfigFields& config, const std::string& family,
                                        double logit_cap) {
  FamilyRules rules;
  rules.tied_embeddings = true;
  rules.activation_field = "hidden_activation";
  rules.activation = "gelu_pytorch_tanh";
  KVSWEEP_ASSIGN(DecoderConfig out, read_decoder_config(config, family, rules));
  KVSWEEP_ASSIGN(out.qkv_bias, config.boolean("attention_bias", false));
  out.out_bias = out.qkv_bias;
  out.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
               "post_feedforward_layernorm"};
  out.norm_plus_one = true;
  out.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(out.hidden)));
  KVSWEEP_ASSIGN(const double scalar, config.positive("query_pre_attn_scalar", 256.0));
  out.query_scale = static_cast<float>(1.0 / std::sqrt(scalar));
  KVSWEEP_ASSIGN(out.logit_cap, read_cap(config, "final_logit_softcapping", logit_cap));
  return out;
}

}  // namespace kvsweep::model
