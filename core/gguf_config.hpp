// The configuration of a GGUF model in the spelling of a Hugging Face config.json.
#pragma once

#include "core/gguf.hpp"
#include "core/json.hpp"

namespace kvsweep {

// What config.json of the model would say, as far as it matters for computing. Architectures:
// llama (Llama, Mistral, SmolLM2), qwen2, qwen3, phi3, gemma2, gemma3, smollm3, olmo2.
// bad_input names file and key: an architecture or variant that is not known (mixture of experts,
// OLMo 3), a key of the architecture whose effect is not known here, a value that is missing or out
// of range.
//
// Facts that llama.cpp has in code and not in the file are stated here: which layers of Gemma have
// a window, which of SmolLM3 do not rotate, how the largest Gemmas scale queries.
Result<Json> gguf_config(const GgufFile& file);

// Architectures that gguf_config knows, by their names in GGUF.
std::vector<std::string> gguf_architectures();

}  // namespace kvsweep
