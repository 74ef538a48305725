// Ends a generation at the first stop string, without decoding everything at every token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/text/tokenizer.hpp"

namespace kvsweep::service {

// True when the text of `tokens` contains one of `stops`. It is asked after every token, so it
// decodes only as many of the last tokens as a stop string can span (every token is at least one
// byte, and a few more make up for tokens that are cut in the middle of a character); only a hit
// there is confirmed on the whole text.
bool ends_with_stop(const text::Tokenizer& tokenizer, const std::vector<int32_t>& tokens,
                    const std::vector<std::string>& stops);

}  // namespace kvsweep::service
