// What the tests of RULER share: made-up words, a tokenizer of whole words, pieces of a prompt.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "worker/task/ruler/generator.hpp"

namespace kvsweep::task::ruler {

inline Material made_material() {
  Material material;
  for (int i = 0; i < 60; ++i) {
    material.adjectives.push_back("adj" + std::to_string(i));
    material.nouns.push_back("noun" + std::to_string(i));
  }
  for (int i = 0; i < 3000; ++i) material.words.push_back("w" + std::to_string(100'000 + i));
  for (int i = 0; i < 900; ++i) {
    material.essay.push_back((i % 7 == 0 ? "Word" : "word") + std::to_string(i) +
                             (i % 7 == 6 ? "." : ""));
  }
  return material;
}

// Pieces between blanks: what a tokenizer of whole words gives.
inline Result<int64_t> count_words(const std::string& text) {
  int64_t count = 0;
  bool inside = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    count += !blank && !inside;
    inside = !blank;
  }
  return count;
}

inline GeneratorOptions options_of(const std::string& subtask, int64_t length) {
  return {subtask, length, 7, "search", {}};
}

inline int64_t occurrences(const std::string& text, const std::string& piece) {
  int64_t count = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) {
    ++count;
  }
  return count;
}

// The text between the last `before` and the first `after` that follows it.
inline std::string between(const std::string& text, const std::string& before,
                           const std::string& after) {
  const size_t start = text.rfind(before);
  EXPECT_NE(start, std::string::npos) << before;
  const size_t from = start + before.size();
  return text.substr(from, text.find(after, from) - from);
}

}  // namespace kvsweep::task::ruler
