// Chinese word segmentation equal to jieba 0.42.1's jieba.cut(text, cut_all=False), from jieba's
// own dictionary and tables. LongBench scores its Chinese sets over these words.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::task {

// Immutable after loading; const methods are thread-safe.
class ChineseSegmenter {
 public:
  // Reads DIR/dict.txt (lines "word frequency tag") and DIR/hmm.json (jieba/finalseg's tables as
  // one object: "start", "trans", "emit", with the states B, M, E, S as keys). About 0.2 s and
  // 40 MB for the full dictionary. not_found says what to put where; bad_input names file and line.
  static Result<ChineseSegmenter> load(const std::string& dir);
  ChineseSegmenter(ChineseSegmenter&&) noexcept;
  ChineseSegmenter& operator=(ChineseSegmenter&&) noexcept;
  ~ChineseSegmenter();

  // The words in order, as views into `text`; together they are the text. Linear in its length.
  std::vector<std::u32string_view> cut(std::u32string_view text) const;

 private:
  struct Tables;
  explicit ChineseSegmenter(std::unique_ptr<Tables> tables);
  std::unique_ptr<Tables> tables_;
};

}  // namespace kvsweep::task
