#include "worker/task/text_similarity.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "worker/task/bit_lcs.hpp"

namespace kvsweep::task {
namespace {

constexpr size_t kAutojunkLength = 200;

struct Range {
  size_t a_begin, a_end, b_begin, b_end;
};

struct Block {
  size_t a = 0, b = 0, size = 0;
};

// difflib.SequenceMatcher without a junk function.
class BlockFinder {
 public:
  BlockFinder(std::u32string_view a, std::u32string_view b)
      : a_(a), b_(b), row_(b.size() + 1), previous_(b.size() + 1) {
    for (size_t j = 0; j < b.size(); ++j) places_[b[j]].push_back(j);
    if (b.size() < kAutojunkLength) return;
    const size_t most = b.size() / 100 + 1;
    std::erase_if(places_, [&](const auto& entry) { return entry.second.size() > most; });
  }

  // The longest block within the range; size 0 when there is none.
  Block longest(const Range& range) {
    Block best{range.a_begin, range.b_begin, 0};
    for (size_t i = range.a_begin; i < range.a_end; ++i) {
      extend_row(i, range, best);
      if (i > range.a_begin) clear(previous_, i - 1);
      std::swap(row_, previous_);
    }
    if (range.a_end > range.a_begin) clear(previous_, range.a_end - 1);
    widen(best, range);
    return best;
  }

 private:
  const std::vector<size_t>* places_of(char32_t c) const {
    const auto entry = places_.find(c);
    return entry == places_.end() ? nullptr : &entry->second;
  }

  // row_[j + 1] = length of the common block that ends with a[i] and b[j].
  void extend_row(size_t i, const Range& range, Block& best) {
    const std::vector<size_t>* places = places_of(a_[i]);
    if (places == nullptr) return;
    auto place = std::lower_bound(places->begin(), places->end(), range.b_begin);
    for (; place != places->end() && *place < range.b_end; ++place) {
      const size_t j = *place;
      const size_t size = row_[j + 1] = previous_[j] + 1;
      if (size > best.size) best = {i + 1 - size, j + 1 - size, size};
    }
  }

  void clear(std::vector<size_t>& row, size_t i) const {
    const std::vector<size_t>* places = places_of(a_[i]);
    if (places == nullptr) return;
    for (const size_t j : *places) row[j + 1] = 0;
  }

  // Over characters that start no block.
  void widen(Block& best, const Range& range) const {
    while (best.a > range.a_begin && best.b > range.b_begin && a_[best.a - 1] == b_[best.b - 1]) {
      --best.a, --best.b, ++best.size;
    }
    while (best.a + best.size < range.a_end && best.b + best.size < range.b_end &&
           a_[best.a + best.size] == b_[best.b + best.size]) {
      ++best.size;
    }
  }

  std::u32string_view a_, b_;
  std::unordered_map<char32_t, std::vector<size_t>> places_;
  std::vector<size_t> row_, previous_;  // all zero between calls
};

}  // namespace

int64_t matching_characters(std::u32string_view a, std::u32string_view b) {
  BlockFinder finder(a, b);
  std::vector<Range> open = {{0, a.size(), 0, b.size()}};
  size_t total = 0;
  while (!open.empty()) {
    const Range range = open.back();
    open.pop_back();
    const Block block = finder.longest(range);
    if (block.size == 0) continue;
    total += block.size;
    const Range left{range.a_begin, block.a, range.b_begin, block.b};
    const Range right{block.a + block.size, range.a_end, block.b + block.size, range.b_end};
    for (const Range& rest : {left, right}) {
      if (rest.a_begin < rest.a_end && rest.b_begin < rest.b_end) open.push_back(rest);
    }
  }
  return static_cast<int64_t>(total);
}

int64_t common_subsequence(std::u32string_view a, std::u32string_view b) {
  std::unordered_map<char32_t, std::vector<size_t>> places;
  for (size_t j = 0; j < b.size(); ++j) places[b[j]].push_back(j);
  LcsColumn column(b.size());
  for (const char32_t c : a) {
    const auto entry = places.find(c);
    if (entry != places.end()) column.advance(entry->second);
  }
  return static_cast<int64_t>(column.ones(b.size()));
}

int fuzz_ratio(std::u32string_view a, std::u32string_view b, Similarity similarity) {
  if (a == b) return 100;
  if (a.empty() || b.empty()) return 0;
  const int64_t same =
      similarity == Similarity::difflib ? matching_characters(a, b) : common_subsequence(a, b);
  const double ratio = 2.0 * static_cast<double>(same) / static_cast<double>(a.size() + b.size());
  return static_cast<int>(std::nearbyint(100 * ratio));
}

}  // namespace kvsweep::task
