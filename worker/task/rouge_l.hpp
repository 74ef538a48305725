// ROUGE-L as the Python package rouge 1.0.1 computes it, which LongBench scores summaries with. It
// is not the ROUGE-L of Lin (2004). Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace kvsweep::task {

// How many calls of its recursive back-trace that package makes before Python (limit 1000) stops it
// with an exception, when LongBench's eval.py calls it. A score that met one is 0.
inline constexpr size_t kRougeCalls = 991;
inline constexpr size_t kRougeZhCalls = 990;  // one frame more lies below: rouge_zh_score

// The field rouge-l f.
//   1. Both texts are split at every '.'; empty pieces are dropped; a piece is its words (Python's
//      split()); a piece of white space only is one empty word.
//   2. For every pair of a reference and a hypothesis piece, the words of one longest common
//      subsequence: traced back from the ends, up in the reference only where that is longer.
//   3. L, n, m: how many different words step 2 found, the hypothesis has, the reference has.
//   4. P = L / n, R = L / m, F = 2 P R / (P + R + 1e-8).
// 0 where a text has no piece, and where the back-trace of a pair takes more than `calls` calls
// (its steps and one more). "a b c. d" against "a c d": {a, c} and {d}, L = 3, n = 4, m = 3.
//
// Bit-parallel: a pair of n and m words costs m * n / 64, and only pairs that share a word not
// found yet, or that may be too deep, are looked at. The package takes n * m for every pair.
double rouge_l(std::u32string_view hypothesis, std::u32string_view reference, size_t calls);

}  // namespace kvsweep::task
