// One column of the table of a longest common subsequence, 64 rows a word (Hyyro, "Bit-parallel LCS
// length computation revisited", 2004).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvsweep::task {

// The table T[i][j] is the length of the LCS of the first i symbols of x and the first j of y. The
// column j holds bit i - 1 where T[i][j] = T[i-1][j] + 1. x = "abd", y = "ad": column 1 is 001,
// column 2 is 101 (bit 0 on the right), so the LCS has length 2.
class LcsColumn {
 public:
  // Column 0 for an x of `rows` symbols.
  explicit LcsColumn(size_t rows) : rises_((rows + 63) / 64, 0), matches_(rises_.size(), 0) {}

  // Goes on to the next column: `places` are the rows (from 0) at which x holds y's next symbol.
  // O(rows / 64 + places).
  void advance(std::span<const size_t> places) {
    for (const size_t row : places) matches_[row / 64] |= bit(row);
    uint64_t carry = 0;
    for (size_t w = 0; w < rises_.size(); ++w) {
      // On the complement V of the column: V' = (V + (V & M)) | (V & ~M).
      const uint64_t v = ~rises_[w];
      const uint64_t u = v & matches_[w];
      const uint64_t partial = v + u;
      const uint64_t sum = partial + carry;
      carry = partial < v || sum < partial ? 1 : 0;
      rises_[w] = ~(sum | (v & ~matches_[w]));
    }
    for (const size_t row : places) matches_[row / 64] = 0;
  }

  const std::vector<uint64_t>& words() const { return rises_; }

  // T[row][j] for a column's words: how many of the first `row` bits are set.
  static size_t ones(std::span<const uint64_t> words, size_t row) {
    size_t count = 0;
    for (size_t w = 0; w < row / 64; ++w) count += static_cast<size_t>(std::popcount(words[w]));
    if (row % 64 != 0) {
      count += static_cast<size_t>(std::popcount(words[row / 64] & (bit(row) - 1)));
    }
    return count;
  }
  size_t ones(size_t row) const { return ones(rises_, row); }

  static uint64_t bit(size_t row) { return uint64_t{1} << (row % 64); }

 private:
  std::vector<uint64_t> rises_;
  std::vector<uint64_t> matches_;  // all zero between calls
};

}  // namespace kvsweep::task
