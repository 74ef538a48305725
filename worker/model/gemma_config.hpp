// What Gemma 2 and Gemma 3 share.
#pragma once

#include <string>

#include "worker/model/decoder_config.hpp"

namespace kvsweep::model {

// Sizes, norms around attention and MLP that multiply by 1 + weight, gelu_tanh, scaled embeddings,
// query scale and logit cap (`logit_cap` when the field is absent). No RoPE, no windows.
Result<DecoderConfig> read_gemma_config(const ConfigFields& config, const std::string& family,
                                        double logit_cap);

}  // namespace kvsweep::model
