// What a model family implements: one file worker/model/<id>.cpp that defines load_<id>, plus one
// line in core/catalog/families.def.
#pragma once

#include <memory>
#include <string>

#include "worker/model/config_fields.hpp"
#include "worker/model/model.hpp"

namespace kvsweep::model {

struct FamilyContext {
  std::string model_dir;
  ConfigFields config;  // DIR/config.json
  LoadOptions options;
};

#define KVSWEEP_FAMILY(id, architecture, kv_heads, head_dim) \
  Result<std::unique_ptr<Model>> load_##id(const FamilyContext& context);
#include "core/catalog/families.def"
#undef KVSWEEP_FAMILY

}  // namespace kvsweep::model
