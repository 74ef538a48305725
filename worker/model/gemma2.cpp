// Gemma 2 (Gemma team 2024): soft caps of scores and logits, every other layer with a window.
#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"
#include "worker/model/gemma_config.hpp"

namespace kvsweep::model {

Result<std::unique_ptr<Model>> load_gemma2(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  KVSWEEP_ASSIGN(DecoderConfig config, read_gemma_config(fields, "gemma2", 30.0));
  KVSWEEP_ASSIGN(config.score_cap, read_cap(fields, "attn_logit_softcapping", 50.0));
  KVSWEEP_TRY(read_only_rope(fields, config));
  std::vector<bool> usual(config.layers.size());
  for (size_t i = 0; i < usual.size(); ++i) usual[i] = i % 2 == 0;
  KVSWEEP_ASSIGN(const std::vector<bool> sliding, read_sliding_layers(fields, usual));
  KVSWEEP_ASSIGN(const int64_t window, read_window(fields, 4096));
  KVSWEEP_TRY(apply_window(fields, sliding, window, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
