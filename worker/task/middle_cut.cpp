#include "worker/task/middle_cut.hpp"

#include <vector>

namespace kvsweep::task {

Result<std::string> cut_middle(const std::string& prompt, int64_t max_tokens,
                               const text::Tokenizer& tokenizer) {
  if (max_tokens < 2) {
    return bad_input("a prompt cannot be cut to " + std::to_string(max_tokens) +
                     " tokens; allowed are at least 2");
  }
  KVSWEEP_ASSIGN(const std::vector<int32_t> ids, tokenizer.encode(prompt, true));
  if (static_cast<int64_t>(ids.size()) <= max_tokens) return prompt;
  const int64_t half = max_tokens / 2;
  KVSWEEP_ASSIGN(const std::string head, tokenizer.decode({ids.begin(), ids.begin() + half}, true));
  KVSWEEP_ASSIGN(const std::string tail, tokenizer.decode({ids.end() - half, ids.end()}, true));
  return head + tail;
}

}  // namespace kvsweep::task
