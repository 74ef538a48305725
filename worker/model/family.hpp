// What a model family implements: one file worker/model/<id>.cpp that defines read_<id>, plus one
// line in core/catalog/families.def.
#pragma once

#include <string>

#include "core/result.hpp"
#include "worker/model/config_fields.hpp"
#include "worker/model/decoder_config.hpp"

namespace kvsweep::model {

// The decoder that a config.json of this family describes. bad_input names the field.
#define KVSWEEP_FAMILY(id, architecture, kv_heads, head_dim, models, ropes, summary) \
  Result<DecoderConfig> read_##id(const ConfigFields& fields);
#include "core/catalog/families.def"
#undef KVSWEEP_FAMILY

// The decoder of a model folder or GGUF file, read by the first family that its `architectures`
// name. bad_input names file and field.
Result<DecoderConfig> configured_decoder(const std::string& model);

}  // namespace kvsweep::model
