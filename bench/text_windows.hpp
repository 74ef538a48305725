// Windows of a text in a model's tokens, for the benchmark programs.
#pragma once

#include <iterator>
#include <vector>

#include "bench/must.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::bench {

// The first `count` windows of `length` tokens, without overlap and without special tokens.
inline std::vector<std::vector<int32_t>> text_windows(const std::string& model,
                                                      const std::string& path, int64_t count,
                                                      int64_t length) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read " + path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto tokenizer = must(text::Tokenizer::load(model));
  const std::vector<int32_t> tokens = must(tokenizer.encode(text, false));
  const auto have = static_cast<int64_t>(tokens.size()) / length;
  if (have < count) {
    fail(fmt::format("{} has {} windows of {} tokens, not {}", path, have, length, count));
  }
  std::vector<std::vector<int32_t>> windows;
  for (int64_t i = 0; i < count; ++i) {
    windows.emplace_back(tokens.begin() + i * length, tokens.begin() + (i + 1) * length);
  }
  return windows;
}

}  // namespace kvsweep::bench
