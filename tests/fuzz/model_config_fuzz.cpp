// config.json as a worker reads it: a decoder within its limits, whose bytes the coordinator counts
// alike (core/geometry.hpp), or an error that names the file.
#include <cmath>

#include "core/geometry.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "worker/model/family.hpp"
#include "worker/model/quantized_weights.hpp"

namespace {

using namespace kvsweep;
using fuzz::require;

void check_rope(const model::RopeConfig& rope, int head_dim) {
  const int channels = model::rotary_channels(rope, head_dim);
  require(channels >= 2 && channels <= head_dim && channels % 2 == 0);
  require(std::isfinite(rope.theta) && rope.theta > 0 && std::isfinite(rope.factor));
  require(std::isfinite(rope.attention_factor) && rope.attention_factor > 0);
  if (rope.type != model::RopeType::longrope) return;
  require(static_cast<int>(rope.short_factors.size()) == channels / 2);
  require(static_cast<int>(rope.long_factors.size()) == channels / 2);
}

void check_decoder(const model::DecoderConfig& config) {
  require(config.vocab >= 1 && config.hidden >= 1 && config.intermediate >= 1);
  require(config.kv_heads >= 1 && config.heads % config.kv_heads == 0);
  require(config.head_dim >= 2 && config.head_dim % 2 == 0 && config.max_context >= 1);
  require(!config.layers.empty() && !config.ropes.empty());
  for (const model::LayerSettings& layer : config.layers) {
    require(layer.rope >= -1 && layer.rope < static_cast<int>(config.ropes.size()));
    require(layer.window >= 0 && layer.window <= config.max_context);
  }
  for (const model::RopeConfig& rope : config.ropes) check_rope(rope, config.head_dim);
  require(std::isfinite(config.query_scale) && std::isfinite(config.embedding_scale));
  require(std::isfinite(config.score_cap) && std::isfinite(config.logit_cap));
  require(std::isfinite(config.rms_eps) && config.rms_eps >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFile file("config.json");
  file.write(data, size);
  const auto config = model::configured_decoder(file.folder());
  fuzz::require_named(config, file.path());
  const auto json = read_json_file(file.path());
  if (json.ok()) fuzz::require_named(model::read_quantization(*json, file.path()), file.path());
  if (!config.ok()) return 0;
  check_decoder(*config);
  const auto counted = read_geometry(file.folder());
  require(counted.ok() && *counted == config->geometry());
  return 0;
}
