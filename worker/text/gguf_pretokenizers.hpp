// How text is cut into words before merging: what names in tokenizer.ggml.pre mean.
#pragma once

#include <string>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep::text {

struct Pretokenizer {
  Json normalizer;             // null, or NFC
  Json pre_tokenizer;          // as in tokenizer.json
  bool ignore_merges = false;  // a word that is a token is taken whole
  bool add_bos = false;        // when the file does not say
};

// bad_input, naming the supported ones, for a name that is not in the table.
Result<Pretokenizer> find_pretokenizer(const std::string& name);

}  // namespace kvsweep::text
