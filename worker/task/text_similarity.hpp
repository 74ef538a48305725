// How alike two texts are, as fuzzywuzzy's `ratio` counts it. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvsweep::task {

enum class Similarity {
  difflib,  // fuzzywuzzy alone: Python's difflib.SequenceMatcher, autojunk included
  indel,    // with python-Levenshtein installed: 2 * LCS / (|a| + |b|)
};

// Percent, rounded half to even; 100 for equal texts (two empty ones too), 0 when one is empty.
int fuzz_ratio(std::u32string_view a, std::u32string_view b, Similarity similarity);

// Characters in matching blocks: the longest common block (of equals the one that starts first in
// `a`, then in `b`), then the same left and right of it (Ratcliff and Metzener 1988, as difflib
// does). Where |b| >= 200, a character that makes up more than 1 % of `b` starts no block.
// "abxcd" and "abcd": blocks "ab" and "cd", 4. Time O(|a| * r) for each block that is found, where
// r is how often a character of `a` occurs in `b`; memory O(|b|).
int64_t matching_characters(std::u32string_view a, std::u32string_view b);

// Length of the longest common subsequence (Hyyro 2004, bit-parallel): O(|a| * |b| / 64) time,
// O(|b|) memory. "abxcd" and "acbd": "abd", 3.
int64_t common_subsequence(std::u32string_view a, std::u32string_view b);

}  // namespace kvsweep::task
