// The needle test of Greg Kamradt (github.com/gkamradt/LLMTest_NeedleInAHaystack): one sentence in
// a long text, at every length and depth of a grid, and a question that only it answers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "worker/task/ruler/generator.hpp"

namespace kvsweep::task::ruler {

class NeedleGrid {
 public:
  static constexpr int64_t kSteps = 35;  // of lengths and of depths, as in the original
  static constexpr int64_t kSize = kSteps * kSteps;
  static constexpr int kAnswerTokens = 64;

  // Lengths go in even steps from length/16 to `length` tokens, depths from 0 to 100 %. `material`
  // needs an essay and must outlive the grid. Error (bad_input): not even the question fits.
  static Result<NeedleGrid> open(int64_t length, const Material& material, TokenCounter counter);

  // Row 0..kSize-1, a pure function of (length, material, counter, index): consecutive rows lie far
  // apart in the grid, so that the first few already cover it. Prompt in the words of
  // Zefan-Cai/KVCache-Factory; the needle stands between sentences. outputs[0] is what a right
  // answer contains.
  Result<Row> row(int64_t index) const;

  // What ROUGE-1 compares an answer with.
  static const std::string& needle();

  struct Cell {
    int64_t length;  // tokens
    double depth;    // 0..1
  };
  Cell cell(int64_t index) const;

 private:
  NeedleGrid(int64_t length, const Material& material, TokenCounter counter);
  Result<Row> make(int64_t index, int64_t words) const;

  int64_t length_;
  const Material* material_;
  TokenCounter counter_;
  int64_t around_ = 0;  // tokens of everything but the text
  double tokens_per_word_ = 1;
};

}  // namespace kvsweep::task::ruler
