// What the configuration files of a folder change about its tokenizer.json, as transformers 5 reads
// them.
#pragma once

#include <string>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep::text {

// The JSON object that kvs_tokenizer_configure takes, from tokenizer_config.json and config.json:
//   add_bos_token, add_eos_token   where one is given, both decide (an absent one is false) which
//   of
//                                  bos_token and eos_token a text gets, whatever tokenizer.json
//                                  says
//   prepend_scheme                 for tokenizer_class LlamaTokenizer, unless config.json names a
//                                  model_type other than llama: that class reads only vocabulary
//                                  and merges of tokenizer.json and treats spaces by its own rules
// bad_input names file and field.
Result<Json> read_tokenizer_settings(const std::string& model_dir);

}  // namespace kvsweep::text
