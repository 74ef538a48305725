#include "worker/task/rouge_l.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "worker/task/bit_lcs.hpp"
#include "worker/task/unicode_text.hpp"

namespace kvsweep::task {
namespace {

using Word = uint32_t;  // number of a distinct word
using Piece = std::vector<Word>;

// The pieces of a text without repetitions: equal pieces have equal subsequences.
struct Pieces {
  std::vector<Piece> all;
  size_t distinct_words = 0;
};

class Vocabulary {
 public:
  Pieces pieces_of(std::u32string_view text) {
    std::set<Piece> found;
    std::vector<bool> seen;
    Pieces pieces;
    const std::vector<std::u32string_view> parts = split_at(text, U'.');
    for (const std::u32string_view part : parts) {
      if (part.empty()) continue;
      Piece piece = piece_of(part);
      seen.resize(numbers_.size(), false);
      for (const Word word : piece) {
        pieces.distinct_words += seen[word] ? 0 : 1;
        seen[word] = true;
      }
      if (found.insert(piece).second) pieces.all.push_back(std::move(piece));
    }
    return pieces;
  }

  size_t size() const { return numbers_.size(); }

 private:
  Piece piece_of(std::u32string_view part) {
    std::vector<std::u32string_view> words = split_words(part);
    if (words.empty()) words.emplace_back();
    Piece piece;
    for (const std::u32string_view word : words) {
      piece.push_back(numbers_.emplace(word, static_cast<Word>(numbers_.size())).first->second);
    }
    return piece;
  }

  std::unordered_map<std::u32string_view, Word> numbers_;  // views into the two texts
};

// Where each word of a piece stands in it.
using Places = std::unordered_map<Word, std::vector<size_t>>;

class UnionOfSubsequences {
 public:
  UnionOfSubsequences(const std::vector<Piece>& references, size_t words, size_t calls)
      : references_(references), found_(words, false), holders_(words), calls_(calls) {
    for (size_t r = 0; r < references.size(); ++r) {
      longest_reference_ = std::max(longest_reference_, references[r].size());
      for (const Word word : references[r]) {
        if (holders_[word].empty() || holders_[word].back() != r) holders_[word].push_back(r);
      }
    }
    asked_.resize(references.size(), SIZE_MAX);
    places_.resize(references.size());
  }

  // False when a back-trace is too deep.
  bool add(const Piece& hypothesis) {
    ++turn_;
    const bool may_be_deep = hypothesis.size() + longest_reference_ + 1 > calls_;
    for (size_t r = 0; may_be_deep && r < references_.size(); ++r) {
      if (!ask(r, hypothesis)) return false;
    }
    for (const Word word : hypothesis) {
      // What a pair could still add is a word of both that is not found yet.
      for (size_t k = 0; k < holders_[word].size() && !found_[word]; ++k) {
        if (!ask(holders_[word][k], hypothesis)) return false;
      }
    }
    return true;
  }

  size_t size() const {
    return static_cast<size_t>(std::count(found_.begin(), found_.end(), true));
  }

 private:
  bool ask(size_t r, const Piece& hypothesis) {
    if (asked_[r] == turn_) return true;
    asked_[r] = turn_;
    const Piece& reference = references_[r];
    // Every step leaves a word of one side or of both: at least min steps, and one call more.
    if (std::min(reference.size(), hypothesis.size()) + 1 > calls_) return false;
    fill_columns(r, hypothesis);
    return trace_back(reference, hypothesis);
  }

  void fill_columns(size_t r, const Piece& hypothesis) {
    const Piece& reference = references_[r];
    if (places_[r].empty()) {
      for (size_t i = 0; i < reference.size(); ++i) places_[r][reference[i]].push_back(i);
    }
    LcsColumn column(reference.size());
    stride_ = column.words().size();
    columns_.assign(column.words().begin(), column.words().end());
    for (const Word word : hypothesis) {
      const auto places = places_[r].find(word);
      if (places != places_[r].end()) column.advance(places->second);
      columns_.insert(columns_.end(), column.words().begin(), column.words().end());
    }
  }

  std::span<const uint64_t> column(size_t j) const {
    return std::span(columns_).subspan(j * stride_, stride_);
  }

  bool trace_back(const Piece& reference, const Piece& hypothesis) {
    size_t i = reference.size();
    size_t j = hypothesis.size();
    size_t calls = 1;
    for (; i > 0 && j > 0; ++calls) {
      if (calls >= calls_) return false;
      if (reference[i - 1] == hypothesis[j - 1]) {
        found_[reference[i - 1]] = true;
        --i, --j;
      } else if (up_is_longer(i, j)) {
        --i;
      } else {
        --j;
      }
    }
    return true;
  }

  // T[i-1][j] > T[i][j-1]. Both are T[i-1][j-1] or one more.
  bool up_is_longer(size_t i, size_t j) const {
    const std::span<const uint64_t> left = column(j - 1);
    if ((left[(i - 1) / 64] & LcsColumn::bit(i - 1)) != 0) return false;
    return LcsColumn::ones(column(j), i - 1) > LcsColumn::ones(left, i - 1);
  }

  const std::vector<Piece>& references_;
  std::vector<bool> found_;                   // [words]
  std::vector<std::vector<size_t>> holders_;  // [words]: the reference pieces that hold the word
  std::vector<Places> places_;                // [references], made on first use
  std::vector<size_t> asked_;                 // [references]: the last turn it was looked at
  size_t turn_ = 0;
  size_t longest_reference_ = 0;
  size_t calls_;
  std::vector<uint64_t> columns_;  // [hypothesis words + 1, stride_]
  size_t stride_ = 0;
};

}  // namespace

double rouge_l(std::u32string_view hypothesis, std::u32string_view reference, size_t calls) {
  Vocabulary vocabulary;
  const Pieces hypotheses = vocabulary.pieces_of(hypothesis);
  const Pieces references = vocabulary.pieces_of(reference);
  if (hypotheses.all.empty() || references.all.empty()) return 0;
  UnionOfSubsequences common(references.all, vocabulary.size(), calls);
  for (const Piece& piece : hypotheses.all) {
    if (!common.add(piece)) return 0;
  }
  const auto length = static_cast<double>(common.size());
  const double precision = length / static_cast<double>(hypotheses.distinct_words);
  const double recall = length / static_cast<double>(references.distinct_words);
  return 2.0 * ((precision * recall) / (precision + recall + 1e-8));
}

}  // namespace kvsweep::task
