#include "core/model_config.hpp"

#include <filesystem>

#include "core/gguf_config.hpp"

namespace kvsweep {

std::string model_config_path(const std::string& model) {
  if (is_gguf_path(model)) return model;
  return (std::filesystem::path(model) / "config.json").string();
}

Result<Json> read_model_config(const std::string& model) {
  if (!is_gguf_path(model)) return read_json_file(model_config_path(model));
  KVSWEEP_ASSIGN(const GgufFile file, GgufFile::open(model));
  return gguf_config(file);
}

}  // namespace kvsweep
