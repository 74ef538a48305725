#include "worker/task/unicode_text.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "core/text.hpp"

namespace kvsweep::task {
namespace {

// first, first + step, ..., last each lower to themselves + delta.
struct LowerRange {
  uint32_t first, last, step;
  int32_t delta;
};

#include "worker/task/unicode_tables.inc"

constexpr char32_t kCapitalSigma = 0x3a3;
constexpr char32_t kSmallSigma = 0x3c3;
constexpr char32_t kFinalSigma = 0x3c2;
constexpr char32_t kCapitalDottedI = 0x130;

// A set of code points as the places where membership changes, for a binary search.
class CodePointSet {
 public:
  // `runs`: alternating lengths outside and inside the set, from U+0000 on.
  explicit CodePointSet(std::span<const uint32_t> runs) {
    uint32_t at = 0;
    for (const uint32_t run : runs) changes_.push_back(at += run);
  }

  bool contains(char32_t c) const {
    const auto after = std::upper_bound(changes_.begin(), changes_.end(), c);
    return (after - changes_.begin()) % 2 == 1;
  }

 private:
  std::vector<uint32_t> changes_;
};

bool is_cased(char32_t c) {
  static const CodePointSet kSet(kCasedRuns);
  return kSet.contains(c);
}

bool is_ignorable(char32_t c) {
  static const CodePointSet kSet(kIgnorableRuns);
  return kSet.contains(c);
}

// Unicode's Final_Sigma as CPython applies it: a cased letter before and none after, with
// case-ignorable characters skipped on both sides.
bool is_final_sigma(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && is_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

char32_t lower_one(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  const auto* range =
      std::upper_bound(std::begin(kLowerRanges), std::end(kLowerRanges), c,
                       [](char32_t value, const LowerRange& r) { return value < r.first; });
  if (range == std::begin(kLowerRanges)) return c;
  --range;
  if (c > range->last || (c - range->first) % range->step != 0) return c;
  return static_cast<char32_t>(static_cast<int32_t>(c) + range->delta);
}

// The maximal runs of characters of which `belongs` is true.
template <typename Belongs>
std::vector<std::u32string_view> runs_of(std::u32string_view text, const Belongs& belongs) {
  std::vector<std::u32string_view> runs;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && belongs(text[end])) ++end;
    if (end > at) runs.push_back(text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return runs;
}

}  // namespace

std::u32string code_points(std::string_view utf8) {
  const std::string valid = replace_invalid_utf8(utf8);
  std::u32string text;
  text.reserve(valid.size());
  for (size_t i = 0; i < valid.size();) {
    const auto byte = [&](size_t k) -> char32_t { return static_cast<uint8_t>(valid[i + k]); };
    const char32_t lead = byte(0);
    if (lead < 0x80) {
      text += lead;
      i += 1;
    } else if (lead < 0xe0) {
      text += (lead & 0x1f) << 6 | (byte(1) & 0x3f);
      i += 2;
    } else if (lead < 0xf0) {
      text += (lead & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
      i += 3;
    } else {
      text += (lead & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
      i += 4;
    }
  }
  return text;
}

std::string utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  const auto add = [&](char32_t value) { bytes += static_cast<char>(value); };
  for (const char32_t c : text) {
    if (c < 0x80) {
      add(c);
      continue;
    }
    if (c < 0x800) {
      add(0xc0 | c >> 6);
    } else {
      if (c < 0x10000) {
        add(0xe0 | c >> 12);
      } else {
        add(0xf0 | c >> 18);
        add(0x80 | (c >> 12 & 0x3f));
      }
      add(0x80 | (c >> 6 & 0x3f));
    }
    add(0x80 | (c & 0x3f));
  }
  return bytes;
}

bool is_space(char32_t c) {
  static const CodePointSet kSet(kSpaceRuns);
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
  return kSet.contains(c);
}

bool is_digit(char32_t c) {
  static const CodePointSet kSet(kDigitRuns);
  if (c < 0x80) return c >= '0' && c <= '9';
  return kSet.contains(c);
}

bool is_word(char32_t c) {
  static const CodePointSet kSet(kWordRuns);
  return kSet.contains(c);
}

std::u32string lower(std::u32string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c == kCapitalSigma) {
      result += is_final_sigma(text, i) ? kFinalSigma : kSmallSigma;
    } else if (c == kCapitalDottedI) {
      result += U"i\u0307";
    } else {
      result += lower_one(c);
    }
  }
  return result;
}

std::vector<std::u32string_view> split_words(std::u32string_view text) {
  return runs_of(text, [](char32_t c) { return !is_space(c); });
}

std::vector<std::u32string_view> split_at(std::u32string_view text, char32_t separator) {
  std::vector<std::u32string_view> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::u32string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::u32string_view> digit_runs(std::u32string_view text) {
  return runs_of(text, is_digit);
}

}  // namespace kvsweep::task
