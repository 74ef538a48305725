// Gemma 3 (Gemma team 2025), text only: norms of queries and keys, five layers with a window for
// each one without, and a RoPE of its own for either kind.
#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"
#include "worker/model/gemma_config.hpp"

namespace kvsweep::model {
namespace {

constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";

Result<std::vector<bool>> read_sliding(const ConfigFields& fields, size_t layers) {
  KVSWEEP_ASSIGN(const int64_t pattern, fields.integer("sliding_window_pattern", 1, 1 << 20, 6));
  std::vector<bool> usual(layers);
  for (size_t i = 0; i < layers; ++i) usual[i] = (static_cast<int64_t>(i) + 1) % pattern != 0;
  return read_sliding_layers(fields, usual);
}

// One kind's settings: rope_parameters.<kind> (transformers 5), or, in the older spelling, a base
// for each kind and rope_scaling for layers without window.
Result<RopeConfig> read_kind(const ConfigFields& fields, const DecoderConfig& config, bool full) {
  const char* kind = full ? kFull : kSliding;
  RopeRules rules;
  rules.max_context = config.max_context;
  rules.head_dim = config.head_dim;
  KVSWEEP_ASSIGN(rules.theta, fields.positive(full ? "rope_theta" : "rope_local_base_freq",
                                              full ? 1000000.0 : 10000.0));
  if (fields.has("rope_parameters")) {
    if (fields.has("rope_scaling")) {
      return fields.error("rope_scaling", "and rope_parameters are both present; remove one");
    }
    KVSWEEP_ASSIGN(const ConfigFields kinds, fields.object("rope_parameters"));
    if (!kinds.has(kFull) && !kinds.has(kSliding)) {
      return fields.error("rope_parameters",
                          "has neither full_attention nor sliding_attention; "
                          "this family has settings for each of them");
    }
    if (!kinds.has(kind)) return read_rope_object(fields, kinds.empty(kind), rules);
    KVSWEEP_ASSIGN(const ConfigFields settings, kinds.object(kind));
    return read_rope_object(fields, settings, rules);
  }
  if (!full || !fields.has("rope_scaling")) {
    return read_rope_object(fields, fields.empty("rope_scaling"), rules);
  }
  KVSWEEP_ASSIGN(const ConfigFields scaling, fields.object("rope_scaling"));
  return read_rope_object(fields, scaling, rules);
}

}  // namespace

Result<std::unique_ptr<Model>> load_gemma3(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  KVSWEEP_ASSIGN(DecoderConfig config, read_gemma_config(fields, "gemma3", 0.0));
  if (fields.has("attn_logit_softcapping")) {
    return fields.error("attn_logit_softcapping",
                        "is set; in this family it must be null, since "
                        "transformers does not apply it");
  }
  config.qk_norm = QkNorm::per_head;
  KVSWEEP_ASSIGN(RopeConfig full, read_kind(fields, config, true));
  KVSWEEP_ASSIGN(RopeConfig local, read_kind(fields, config, false));
  if (full.type == RopeType::dynamic || local.type == RopeType::dynamic) {
    return fields.error(fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                        "has rope_type \"dynamic\", which is not supported in this family");
  }
  config.ropes = {std::move(full), std::move(local)};
  KVSWEEP_ASSIGN(const std::vector<bool> sliding, read_sliding(fields, config.layers.size()));
  for (size_t i = 0; i < sliding.size(); ++i) config.layers[i].rope = sliding[i] ? 1 : 0;
  KVSWEEP_ASSIGN(const int64_t window, read_window(fields, 4096));
  KVSWEEP_TRY(apply_window(fields, sliding, window, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
