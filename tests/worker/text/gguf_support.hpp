// What the tests of GGUF tokenizers share.
#pragma once

#include <string>
#include <vector>

#include "core/json.hpp"
#include "tests/support/gguf_writer.hpp"

namespace kvsweep::text {

// Kinds of tokens in GGUF.
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUser = 4, kUnused = 5, kByte = 6;

// The head of a file for a tokenizer; without `pre` the key is left out.
inline test::GgufWriter head(const std::string& model, const std::string& pre,
                             const std::string& architecture = "llama") {
  test::GgufWriter writer;
  writer.words("general.architecture", architecture).words("tokenizer.ggml.model", model);
  if (!pre.empty()) writer.words("tokenizer.ggml.pre", pre);
  return writer;
}

// The merges of a tokenizer.json, "a b" each.
inline std::vector<std::string> merges_of(const Json& document) {
  std::vector<std::string> out;
  for (const Json& merge : document.at("model").at("merges")) {
    out.push_back(merge.is_string()
                      ? merge.get<std::string>()
                      : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return out;
}

}  // namespace kvsweep::text
