// Which tokens end a sequence, as the files of a Hugging Face folder say it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep::text {

// -1 when the tokenizer does not know the token.
using TokenLookup = std::function<int64_t(const std::string&)>;

// The first of: eos_token_id of generation_config.json (an id or a list of ids), eos_token_id of
// config.json, eos_token of tokenizer_config.json. Empty when none of them says. bad_input, naming
// the file, for ids outside [0, vocab_size), unknown tokens and values of another kind.
Result<std::vector<int32_t>> read_eos_ids(const std::string& model_dir, int64_t vocab_size,
                                          const TokenLookup& lookup);

// A JSON object from a file of a model folder; nullopt when the file does not exist.
Result<std::optional<Json>> read_optional_json(const std::string& path);

// The members "*_token" of tokenizer_config.json, which chat templates use: bos_token -> "<s>".
// Empty when the file is missing.
Result<std::map<std::string, std::string>> read_special_tokens(const std::string& model_dir);

}  // namespace kvsweep::text
