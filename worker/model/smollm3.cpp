// SmolLM 3 (Hugging Face 2025): Llama with every fourth layer without RoPE.
#include <fmt/format.h>

#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"

namespace kvsweep::model {
namespace {

// 1: the layer rotates. The list may be longer than the model.
Result<std::vector<int64_t>> read_rotating(const ConfigFields& fields, size_t layers) {
  if (fields.has("no_rope_layers")) {
    KVSWEEP_ASSIGN(std::vector<int64_t> given, fields.integers("no_rope_layers", 0, 1));
    if (given.size() < layers) {
      return fields.error("no_rope_layers", fmt::format("has {} entries, but num_hidden_layers is "
                                                        "{}",
                                                        given.size(), layers));
    }
    return given;
  }
  KVSWEEP_ASSIGN(const int64_t interval, fields.integer("no_rope_layer_interval", 1, 1 << 20, 4));
  std::vector<int64_t> usual;
  for (size_t i = 0; i < layers; ++i) {
    usual.push_back((static_cast<int64_t>(i) + 1) % interval != 0 ? 1 : 0);
  }
  return usual;
}

Status read_layers(const ConfigFields& fields, DecoderConfig& out) {
  KVSWEEP_ASSIGN(const std::vector<int64_t> rotating, read_rotating(fields, out.layers.size()));
  KVSWEEP_ASSIGN(const bool used, fields.boolean("use_sliding_window", false));
  KVSWEEP_ASSIGN(const int64_t given, read_window(fields, 0));
  const int64_t window = used ? given : 0;
  std::vector<bool> usual;
  for (size_t i = 0; i < out.layers.size(); ++i) {
    out.layers[i].rope = rotating[i] == 1 ? 0 : -1;
    usual.push_back(window > 0 && rotating[i] == 0);
  }
  KVSWEEP_ASSIGN(const std::vector<bool> sliding, read_sliding_layers(fields, usual));
  return apply_window(fields, sliding, window, out);
}

}  // namespace

Result<std::unique_ptr<Model>> load_smollm3(const FamilyContext& context) {
  const ConfigFields& fields = context.config;
  FamilyRules rules;
  rules.tied_embeddings = true;
  KVSWEEP_ASSIGN(DecoderConfig config, read_decoder_config(fields, "smollm3", rules));
  KVSWEEP_ASSIGN(config.qkv_bias, fields.boolean("attention_bias", false));
  KVSWEEP_ASSIGN(config.mlp_bias, fields.boolean("mlp_bias", false));
  config.out_bias = config.qkv_bias;
  RopeRules rope;
  rope.theta = 2000000.0;
  KVSWEEP_TRY(read_only_rope(fields, config, rope));
  KVSWEEP_TRY(read_layers(fields, config));
  return load_decoder(context.model_dir, std::move(config));
}

}  // namespace kvsweep::model
