#include "worker/model/family.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/model_config.hpp"
#include "core/text.hpp"
#include "worker/model/model.hpp"
#include "worker/model/weights.hpp"

namespace kvsweep::model {
namespace {

using Reader = Result<DecoderConfig> (*)(const ConfigFields&);

struct Family {
  std::string architecture;
  Reader read;
};

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
#define KVSWEEP_FAMILY(id, architecture, kv_heads, head_dim, models, ropes, summary) \
  {architecture, read_##id},
#include "core/catalog/families.def"
#undef KVSWEEP_FAMILY
  };
  return table;
}

Result<Reader> find_family(const ConfigFields& config) {
  KVSWEEP_ASSIGN(const std::vector<std::string> named, config.texts("architectures"));
  for (const std::string& name : named) {
    for (const Family& family : families()) {
      if (family.architecture == name) return family.read;
    }
  }
  return config.error("architectures", fmt::format("is [{}]; supported is {}", join(named, ", "),
                                                   join(architectures(), ", ")));
}

}  // namespace

Result<DecoderConfig> configured_decoder(const std::string& model_dir) {
  const std::string path = model_config_path(model_dir);
  if (std::error_code code; !std::filesystem::exists(path, code)) {
    return bad_input(
        fmt::format("{} is missing; {} must be a model folder as Hugging Face "
                    "publishes them, or a .gguf file",
                    path, model_dir));
  }
  KVSWEEP_ASSIGN(const ConfigFields fields, ConfigFields::read_model(model_dir));
  KVSWEEP_ASSIGN(const Reader read, find_family(fields));
  return read(fields);
}

Status check_model(const std::string& model_dir) {
  KVSWEEP_TRY(configured_decoder(model_dir));
  KVSWEEP_TRY(WeightFiles::open(model_dir));
  return {};
}

std::vector<std::string> architectures() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.push_back(family.architecture);
  return names;
}

}  // namespace kvsweep::model
