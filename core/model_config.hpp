// The configuration of a model, given as a Hugging Face folder or as one GGUF file.
#pragma once

#include <string>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep {

// The file that says it: DIR/config.json, or the GGUF file itself.
std::string model_config_path(const std::string& model);

// config.json, or what it would say (core/gguf_config.hpp). An error names the file.
Result<Json> read_model_config(const std::string& model);

}  // namespace kvsweep
