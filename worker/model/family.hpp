// What a model family implements: one file worker/model/<id>.cpp that defines read_<id>, plus one
// line in core/catalog/families.def.
#pragma once

#include "core/result.hpp"
#include "worker/model/config_fields.hpp"
#include "worker/model/decoder_config.hpp"

namespace kvsweep::model {

// The decoder that a config.json of this family describes. bad_input names the field.
#define KVSWEEP_FAMILY(id, architecture, kv_heads, head_dim) \
  Result<DecoderConfig> read_##id(const ConfigFields& fields);
#include "core/catalog/families.def"
#undef KVSWEEP_FAMILY

}  // namespace kvsweep::model
