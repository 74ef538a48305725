// What the tests of LongBench share.
#pragma once

#include <string>
#include <vector>

#include "worker/task/chinese_segmenter.hpp"
#include "worker/task/unicode_text.hpp"

namespace kvsweep::task::testing {

inline std::vector<std::string> tokens_of(const ChineseSegmenter& segmenter,
                                          const std::string& text) {
  const std::u32string points = code_points(text);
  const std::vector<std::u32string_view> words = segmenter.cut(points);
  std::vector<std::string> tokens;
  for (const std::u32string_view word : words) tokens.push_back(utf8(word));
  return tokens;
}

}  // namespace kvsweep::task::testing
