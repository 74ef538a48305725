// Llama 2, 3, 3.1 and 3.2 (Touvron et al. 2023), SmolLM 2 and whatever else calls itself so.
#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"

namespace kvsweep::model {

Result<std::unique_ptr<Model>> load_llama(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  KVSWEEP_ASSIGN(DecoderConfig config, read_decoder_config(fields, "llama"));
  KVSWEEP_ASSIGN(config.qkv_bias, fields.boolean("attention_bias", false));
  KVSWEEP_ASSIGN(config.mlp_bias, fields.boolean("mlp_bias", false));
  config.out_bias = config.qkv_bias;
  KVSWEEP_TRY(read_only_rope(fields, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
