// Rotary embedding of a GGUF model as `rope_parameters` of config.json. Internal to gguf_config.
#pragma once

#include <string>

#include "core/gguf.hpp"
#include "core/json.hpp"

namespace kvsweep {

// Adds rope_parameters to `config`, which already says head_dim and max_position_embeddings.
//
// llama.cpp keeps what it divides the frequencies by as tensors: rope_freqs.weight [pairs] for
// Llama 3, rope_factors_long.weight and rope_factors_short.weight for longrope. The first is
// recognised as the Llama 3 rule with its usual constants, so that the numbers are those of the
// original; any other list is longrope whose two lists are equal, which is the same arithmetic.
Status add_gguf_rope(const GgufFile& file, const std::string& architecture, Json& config);

}  // namespace kvsweep
