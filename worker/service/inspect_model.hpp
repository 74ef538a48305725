// What a model is and what of it the worker would refuse, without reading its weights.
#pragma once

#include <string>

#include "core/json.hpp"

namespace kvsweep::service {

// {"weights": {"files": [{"name", "bytes"}], "types": [{"type", "tensors", "elements", "bytes"}]},
//  "tokenizer": {"kind", "tokens"}, "chat_template": true or false, "eos_ids": [...], "eos_text",
//  "refused": [one sentence each]}; null stands for what could not be read.
Json inspect_model(const std::string& model);

}  // namespace kvsweep::service
