#include "core/longbench.hpp"

#include <array>

#include "core/text.hpp"

namespace kvsweep {
namespace {

constexpr std::array kCategories = {LongBenchCategory::single_doc,    LongBenchCategory::multi_doc,
                                    LongBenchCategory::summarization, LongBenchCategory::few_shot,
                                    LongBenchCategory::synthetic,     LongBenchCategory::code};

using Scores = std::map<std::string, double, std::less<>>;

template <typename Belongs>
LongBenchAverage average(std::string name, const Scores& scores, const Belongs& belongs) {
  LongBenchAverage result{std::move(name), {}, {}, {}};
  double sum = 0;
  for (const LongBenchSet& set : longbench_sets()) {
    if (!belongs(set)) continue;
    result.sets.emplace_back(set.name);
    const auto score = scores.find(set.name);
    if (score == scores.end()) {
      result.missing.emplace_back(set.name);
    } else {
      sum += score->second;
    }
  }
  if (result.missing.empty()) result.score = sum / static_cast<double>(result.sets.size());
  return result;
}

bool speaks(const LongBenchSet& set, LongBenchLanguage language) {
  return set.language == language || set.language == LongBenchLanguage::code;
}

// Of six averages, each with the same weight however many sets it is over.
LongBenchAverage mean_of(std::string name, const std::vector<LongBenchAverage>& parts) {
  LongBenchAverage result{std::move(name), {}, {}, {}};
  double sum = 0;
  for (const LongBenchAverage& part : parts) {
    result.sets.insert(result.sets.end(), part.sets.begin(), part.sets.end());
    result.missing.insert(result.missing.end(), part.missing.begin(), part.missing.end());
    sum += part.score.value_or(0);
  }
  if (result.missing.empty()) result.score = sum / static_cast<double>(parts.size());
  return result;
}

}  // namespace

std::string_view to_string(LongBenchCategory category) {
  switch (category) {
    case LongBenchCategory::single_doc:
      return "single-document QA";
    case LongBenchCategory::multi_doc:
      return "multi-document QA";
    case LongBenchCategory::summarization:
      return "summarization";
    case LongBenchCategory::few_shot:
      return "few-shot learning";
    case LongBenchCategory::synthetic:
      return "synthetic";
    case LongBenchCategory::code:
      break;
  }
  return "code completion";
}

const std::vector<LongBenchSet>& longbench_sets() {
  static const std::vector<LongBenchSet> kSets = {
#define KVSWEEP_LONGBENCH(name, category, language, metric, new_tokens, chat, extended) \
  {name,                                                                                \
   LongBenchCategory::category,                                                         \
   LongBenchLanguage::language,                                                         \
   LongBenchMetric::metric,                                                             \
   new_tokens,                                                                          \
   chat,                                                                                \
   extended},
#include "core/catalog/longbench.def"
#undef KVSWEEP_LONGBENCH
  };
  return kSets;
}

Result<LongBenchSet> longbench_set(std::string_view name) {
  std::vector<std::string> names;
  for (const LongBenchSet& set : longbench_sets()) {
    if (set.name == name) return set;
    names.emplace_back(set.name);
  }
  const std::string near = nearest_word(name, names);
  return not_found("LongBench has no set \"" + std::string(name) + "\"; allowed are " +
                   join(names, ", ") + (near.empty() ? "" : " (did you mean " + near + "?)"));
}

std::string_view longbench_bucket(int64_t length) {
  if (length < 4000) return "0-4k";
  return length < 8000 ? "4-8k" : "8k+";
}

std::vector<LongBenchAverage> longbench_averages(const Scores& scores) {
  std::vector<LongBenchAverage> all;
  for (const auto& [language, title] :
       {std::pair{LongBenchLanguage::en, "English"}, {LongBenchLanguage::zh, "Chinese"}}) {
    std::vector<LongBenchAverage> parts;
    for (const LongBenchCategory category : kCategories) {
      const LongBenchLanguage spoken = language;
      parts.push_back(average(std::string(to_string(category)) + ", " + title, scores,
                              [&](const LongBenchSet& set) {
                                return set.category == category && speaks(set, spoken);
                              }));
    }
    parts.push_back(mean_of(std::string("all six categories, ") + title, parts));
    all.insert(all.end(), parts.begin(), parts.end());
  }
  all.push_back(average("16 English and code sets", scores, [](const LongBenchSet& set) {
    return speaks(set, LongBenchLanguage::en);
  }));
  std::erase_if(
      all, [](const LongBenchAverage& each) { return each.missing.size() == each.sets.size(); });
  return all;
}

}  // namespace kvsweep
