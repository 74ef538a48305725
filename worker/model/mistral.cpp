// Mistral (Jiang et al. 2023): Llama with a sliding window in every layer, unless it is null.
#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"

namespace kvsweep::model {

Result<std::unique_ptr<Model>> load_mistral(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  KVSWEEP_ASSIGN(DecoderConfig config, read_decoder_config(fields, "mistral"));
  KVSWEEP_TRY(read_only_rope(fields, config));
  if (fields.has("layer_types")) {
    return fields.error("layer_types", "is present; in this family all layers are alike");
  }
  KVSWEEP_ASSIGN(const int64_t window, read_window(fields, 4096));
  const std::vector<bool> sliding(config.layers.size(), window > 0);
  KVSWEEP_TRY(apply_window(fields, sliding, window, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
