// OLMo 2 (OLMo team 2025): norms after attention and MLP instead of before, and one norm over the
// queries of all heads, as over the keys.
#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"

namespace kvsweep::model {

Result<std::unique_ptr<Model>> load_olmo2(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  FamilyRules rules;
  rules.rms_eps = 1e-5;
  KVSWEEP_ASSIGN(DecoderConfig config, read_decoder_config(fields, "olmo2", rules));
  KVSWEEP_ASSIGN(config.qkv_bias, fields.boolean("attention_bias", false));
  config.out_bias = config.qkv_bias;
  config.qk_norm = QkNorm::all_heads;
  config.norms = {nullptr, "post_attention_layernorm", nullptr, "post_feedforward_layernorm"};
  KVSWEEP_TRY(read_only_rope(fields, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
