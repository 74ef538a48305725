// Phi-3, 3.5 and 4 (Abdin et al. 2024): fused projections, longrope, partial rotation (Phi-4-mini).
#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"

namespace kvsweep::model {

Result<std::unique_ptr<Model>> load_phi3(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  FamilyRules rules;
  rules.rms_eps = 1e-5;
  KVSWEEP_ASSIGN(DecoderConfig config, read_decoder_config(fields, "phi3", rules));
  config.fused = true;
  RopeRules rope;
  rope.phi3 = true;
  rope.original_context = 4096;
  KVSWEEP_TRY(read_only_rope(fields, config, rope));
  KVSWEEP_ASSIGN(const int64_t window, read_window(fields, 0));
  const std::vector<bool> sliding(config.layers.size(), window > 0);
  KVSWEEP_TRY(apply_window(fields, sliding, window, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
