// What llama.cpp's converters did to the tensors of a Hugging Face model, so that it can be undone.
#pragma once

#include <string>

#include "core/result.hpp"

namespace kvsweep::model {

// How the values of a tensor differ from those before the conversion.
enum class GgufChange {
  none,
  // Rows of each head are interleaved: stored row 2 j + h is row h d/2 + j of the d rows, since
  // llama.cpp rotates neighbours where transformers rotates halves.
  query_rows,  // per query head
  key_rows,    // per key-value head
  plus_one,    // norm weights of Gemma, whose RMSNorm multiplies by 1 + weight
  consumed,    // no weight: what it says is in the configuration (rope_freqs.weight, ...)
};

struct GgufName {
  std::string name;  // of Hugging Face; the file's own when it is unknown
  GgufChange change = GgufChange::none;
};

// blk.3.attn_q.weight -> {model.layers.3.self_attn.q_proj.weight, query_rows} for `llama`.
GgufName hugging_face_name(const std::string& architecture, const std::string& name);

}  // namespace kvsweep::model
