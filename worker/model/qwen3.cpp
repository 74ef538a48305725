// Qwen 3 (Qwen team 2025): queries and keys are normalised in each head, before RoPE.
#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"

namespace kvsweep::model {

Result<std::unique_ptr<Model>> load_qwen3(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  KVSWEEP_ASSIGN(DecoderConfig config, read_decoder_config(fields, "qwen3"));
  KVSWEEP_ASSIGN(config.qkv_bias, fields.boolean("attention_bias", false));
  config.out_bias = config.qkv_bias;
  config.qk_norm = QkNorm::per_head;
  KVSWEEP_TRY(read_only_rope(fields, config));
  KVSWEEP_TRY(read_qwen_windows(fields, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
