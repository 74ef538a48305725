// The sets of LongBench and the averages that are published over them. Pure; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace kvsweep {

enum class LongBenchCategory : uint8_t {
  single_doc,
  multi_doc,
  summarization,
  few_shot,
  synthetic,
  code,
};
std::string_view to_string(LongBenchCategory category);  // "single-document QA"

enum class LongBenchLanguage : uint8_t { en, zh, code };

enum class LongBenchMetric : uint8_t {
  qa_f1,
  qa_f1_zh,
  rouge,
  rouge_zh,
  classification,
  retrieval,
  retrieval_zh,
  count,
  code_sim,
};

struct LongBenchSet {
  std::string_view name;
  LongBenchCategory category;
  LongBenchLanguage language;
  LongBenchMetric metric;
  int new_tokens;
  bool chat;
  bool extended;
};
const std::vector<LongBenchSet>& longbench_sets();          // core/catalog/longbench.def
Result<LongBenchSet> longbench_set(std::string_view name);  // the error gives the nearest

// LongBench-E's bucket of a row by its `length` (words, or characters of Chinese): "0-4k" below
// 4000, "4-8k" below 8000, else "8k+".
std::string_view longbench_bucket(int64_t length);

struct LongBenchAverage {
  std::string name;                  // "single-document QA, English"
  std::vector<std::string> sets;     // all that it is over
  std::vector<std::string> missing;  // of these, those without a score
  std::optional<double> score;       // only when none is missing
};

// Averages of set scores (all in the same unit): the six categories in English and in Chinese (the
// two code sets count in both, as in LongBench's tables), the mean of the six per language, and the
// 16 English and code sets that papers on KV caches average over. Averages without any score at all
// are left out.
std::vector<LongBenchAverage> longbench_averages(
    const std::map<std::string, double, std::less<>>& scores);

}  // namespace kvsweep
