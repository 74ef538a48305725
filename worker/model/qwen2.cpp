// Qwen 2 and 2.5 (Qwen team 2024): Llama with biases of queries, keys and values, and windows in
// the upper layers when use_sliding_window says so.
#include "worker/model/family.hpp"

namespace kvsweep::model {

Result<DecoderConfig> read_qwen2(const ConfigFields& fields) {
  KVSWEEP_ASSIGN(DecoderConfig config, read_decoder_config(fields, "qwen2"));
  config.qkv_bias = true;
  KVSWEEP_TRY(read_only_rope(fields, config));
  KVSWEEP_TRY(read_qwen_windows(fields, config));
  return config;
}

}  // namespace kvsweep::model
