#include "worker/task/ruler/needle.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/text.hpp"

namespace kvsweep::task::ruler {
namespace {

constexpr int64_t kStride = 757;  // shares no factor with the size of the grid: visits every cell
static_assert(std::gcd(kStride, NeedleGrid::kSize) == 1);

constexpr int64_t kSampleWords = 400;
constexpr const char* kAnswer = "eat a sandwich and sit in Dolores Park on a sunny day";

std::string prompt(const std::vector<std::string>& sentences, double depth) {
  const auto place =
      static_cast<std::ptrdiff_t>(std::floor(depth * static_cast<double>(sentences.size())));
  std::vector<std::string> parts = sentences;
  parts.insert(parts.begin() + place, NeedleGrid::needle());
  return "This is a very long story book: <book> " + join(parts, " ") +
         " </book>.\n Based on the content of the book, Question: What is the best thing to do in "
         "San Francisco?\nAnswer:";
}

}  // namespace

const std::string& NeedleGrid::needle() {
  static const std::string needle =
      std::string("The best thing to do in San Francisco is ") + kAnswer + ".";
  return needle;
}

NeedleGrid::NeedleGrid(int64_t length, const Material& material, TokenCounter counter)
    : length_(length), material_(&material), counter_(std::move(counter)) {}

Result<NeedleGrid> NeedleGrid::open(int64_t length, const Material& material,
                                    TokenCounter counter) {
  NeedleGrid grid(length, material, std::move(counter));
  KVSWEEP_ASSIGN(grid.around_, grid.counter_(prompt({}, 0)));
  KVSWEEP_ASSIGN(const int64_t tokens,
                 grid.counter_(prompt(sentences_of(material.essay, kSampleWords), 0)));
  grid.tokens_per_word_ = std::max(0.1, static_cast<double>(tokens - grid.around_) / kSampleWords);
  const int64_t least = length / 16;
  if (grid.around_ + kAnswerTokens + 20 <= least) return grid;
  return bad_input("needle: length is " + std::to_string(length) +
                   " tokens, and its grid begins at a 16th of that; the question and the answer " +
                   "alone take " + std::to_string(grid.around_ + kAnswerTokens) +
                   ", so that length must be at least " +
                   std::to_string(16 * (grid.around_ + kAnswerTokens + 20)));
}

NeedleGrid::Cell NeedleGrid::cell(int64_t index) const {
  const int64_t place = index * kStride % kSize;
  const double share = static_cast<double>(place / kSteps) / (kSteps - 1);
  const double least = static_cast<double>(length_) / 16;
  return {static_cast<int64_t>(least + share * (static_cast<double>(length_) - least)),
          static_cast<double>(place % kSteps) / (kSteps - 1)};
}

Result<Row> NeedleGrid::make(int64_t index, int64_t words) const {
  Row row;
  row.index = index;
  row.input = prompt(sentences_of(material_->essay, words), cell(index).depth);
  row.outputs = {kAnswer};
  KVSWEEP_ASSIGN(const int64_t tokens, counter_(row.input));
  row.length = tokens + kAnswerTokens;
  return row;
}

// Newton's steps on the number of words: each takes what is missing or too much, by the tokens that
// a word has on average.
Result<Row> NeedleGrid::row(int64_t index) const {
  const int64_t wanted = cell(index).length;
  auto words = static_cast<int64_t>(static_cast<double>(wanted - around_ - kAnswerTokens) /
                                    tokens_per_word_);
  for (int step = 0;; ++step) {
    words = std::max<int64_t>(words, 1);
    KVSWEEP_ASSIGN(Row row, make(index, words));
    const auto missing = static_cast<double>(wanted - row.length);
    // The second step is close enough; later ones only shorten.
    if (missing >= 0 && (step >= 1 || missing < 0.005 * static_cast<double>(wanted))) return row;
    if (missing < 0 && words == 1) {
      return bad_input("needle: row " + std::to_string(index) + " takes " +
                       std::to_string(row.length) +
                       " tokens with one word of text; its length is " + std::to_string(wanted));
    }
    const auto change = static_cast<int64_t>(std::floor(missing / tokens_per_word_));
    words += change == 0 ? -1 : change;
    if (missing >= 0) words -= 2;  // room for words that are longer than the average
  }
}

}  // namespace kvsweep::task::ruler
