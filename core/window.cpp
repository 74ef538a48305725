#include "core/window.hpp"

#include <algorithm>

namespace kvsweep {
namespace {

int64_t whole_blocks(int64_t tokens, int block) {
  return std::max<int64_t>(0, tokens) / block * block;
}

// Of `exact` tokens, those that leave in whole blocks.
int64_t leaving(const Window& window, int64_t exact) {
  return whole_blocks(exact - exact * window.share / 10, window.block);
}

}  // namespace

int64_t CodedTokens::next() {
  const int64_t position = position_++;
  if (window_.rule == WindowRule::window_share) {
    if (position + 1 >= prompt_) coded_ += leaving(window_, position + 1 - coded_);
  } else {
    coded_ = coded_tokens(window_, position, prompt_);
  }
  return coded_;
}

int64_t coded_tokens(const Window& window, int64_t position, int64_t prompt) {
  if (position < 0) return 0;
  switch (window.rule) {
    case WindowRule::tokens:
      return whole_blocks(position + 1 - window.keep, window.block);
    case WindowRule::total_share:
      return leaving(window, position + 1);
    case WindowRule::recode:
      if (position + 1 < prompt) return 0;
      return prompt + whole_blocks(position - prompt, window.block);
    case WindowRule::window_share:
      break;
  }
  int64_t coded = 0;
  for (int64_t p = std::max<int64_t>(0, prompt - 1); p <= position; ++p) {
    coded += leaving(window, p + 1 - coded);
  }
  return coded;
}

int64_t most_exact(const Window& window, int64_t tokens, int64_t prompt) {
  if (window.rule == WindowRule::recode) return window.block;
  if (window.rule == WindowRule::tokens) return window.keep + window.block - 1;
  // A window shrinks until whole blocks no longer leave it; what is then left holds no block.
  int64_t steady = 0;
  while (leaving(window, steady + 1) == 0) ++steady;
  const int64_t start = window.rule == WindowRule::total_share ? tokens : std::min(tokens, prompt);
  return std::max(steady, start * window.share / 10 + window.block - 1);
}

}  // namespace kvsweep
