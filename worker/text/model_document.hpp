// The small JSON files beside a model's weights, whether it is a folder or one GGUF file.
#pragma once

#include <optional>
#include <string>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep::text {

// DIR/NAME, or what the metadata of a GGUF file say in its form (gguf_tokenizer.hpp; config.json
// says nothing there that the others do not). nullopt when there is none; bad_input when it is no
// JSON object.
Result<std::optional<Json>> read_model_document(const std::string& model, const std::string& name);

}  // namespace kvsweep::text
