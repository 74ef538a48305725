// Qwen 2 and 2.5 (Qwen team 2024): Llama with biases of queries, keys and values, and windows in
// the upper layers when use_sliding_window says so.
#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"

namespace kvsweep::model {

Result<std::unique_ptr<Model>> load_qwen2(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  KVSWEEP_ASSIGN(DecoderConfig config, read_decoder_config(fields, "qwen2"));
  config.qkv_bias = true;
  KVSWEEP_TRY(read_only_rope(fields, config));
  KVSWEEP_TRY(read_qwen_windows(fields, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
