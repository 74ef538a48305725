// LongBench's way to shorten a prompt.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::task {

// pred.py's truncation: when `prompt`, tokenized with special tokens, has more than `max_tokens`,
// the texts of its first and its last max_tokens / 2 tokens, each decoded without special tokens,
// joined. The result is text again: tokenizing it may give a few tokens more or fewer. Otherwise
// the prompt itself. max_tokens >= 2, else bad_input.
Result<std::string> cut_middle(const std::string& prompt, int64_t max_tokens,
                               const text::Tokenizer& tokenizer);

}  // namespace kvsweep::task
