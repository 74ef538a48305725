#include "worker/task/longbench_metrics.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "worker/task/rouge_l.hpp"
#include "worker/task/unicode_text.hpp"

namespace kvsweep::task {
namespace {

// Python's string.punctuation.
bool is_ascii_punctuation(char32_t c) {
  return (c >= 0x21 && c <= 0x2f) || (c >= 0x3a && c <= 0x40) || (c >= 0x5b && c <= 0x60) ||
         (c >= 0x7b && c <= 0x7e);
}

// The characters of metrics.py's list beyond ASCII, as ranges of code points.
bool is_cjk_punctuation(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x2013, 0x2014}, {0x2018, 0x2019}, {0x201b, 0x201f}, {0x2026, 0x2027}, {0x3001, 0x3003},
      {0x300b, 0x3011}, {0x3014, 0x301f}, {0x3030, 0x3030}, {0x303e, 0x303f}, {0xfe4f, 0xfe4f},
      {0xff01, 0xff0d}, {0xff0f, 0xff0f}, {0xff1a, 0xff20}, {0xff3b, 0xff40}, {0xff5b, 0xff64},
  };
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

// re.sub(r"\b(a|an|the)\b", " ", text): such a match is always a whole run of word characters.
std::u32string without_articles(std::u32string_view text) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == at) ++end;
    const std::u32string_view part = text.substr(at, end - at);
    const bool article = part == U"a" || part == U"an" || part == U"the";
    result += article ? U" " : part;
    at = end;
  }
  return result;
}

double f1_of(const std::vector<std::u32string_view>& prediction,
             const std::vector<std::u32string_view>& truth) {
  std::unordered_map<std::u32string_view, int64_t> left;
  for (const std::u32string_view word : truth) ++left[word];
  int64_t same = 0;
  for (const std::u32string_view word : prediction) {
    const auto entry = left.find(word);
    if (entry != left.end() && entry->second-- > 0) ++same;
  }
  if (same == 0) return 0;
  const double precision = static_cast<double>(same) / static_cast<double>(prediction.size());
  const double recall = static_cast<double>(same) / static_cast<double>(truth.size());
  return (2 * precision * recall) / (precision + recall);
}

std::u32string normal_answer(std::string_view text) {
  std::u32string result = lower(code_points(text));
  std::erase_if(result, is_ascii_punctuation);
  return without_articles(result);
}

std::vector<std::u32string> normal_words_zh(std::string_view text,
                                            const ChineseSegmenter& segmenter) {
  const std::u32string points = code_points(text);
  const std::vector<std::u32string_view> cut = segmenter.cut(points);
  std::vector<std::u32string> words;
  for (const std::u32string_view word : cut) {
    std::u32string normal = lower(word);
    std::erase_if(normal, [](char32_t c) {
      return is_ascii_punctuation(c) || is_cjk_punctuation(c) || is_space(c);
    });
    if (!normal.empty()) words.push_back(std::move(normal));
  }
  return words;
}

std::vector<std::u32string_view> views_of(const std::vector<std::u32string>& words) {
  return {words.begin(), words.end()};
}

std::u32string joined_words(std::string_view text, const ChineseSegmenter& segmenter) {
  const std::u32string points = code_points(text);
  const std::vector<std::u32string_view> cut = segmenter.cut(points);
  std::u32string joined;
  for (const std::u32string_view word : cut) {
    if (!joined.empty()) joined += U' ';
    joined += word;
  }
  return joined;
}

// Group 1 of the first match of `mark(\d+)`; empty when there is none.
std::u32string number_after(std::u32string_view mark, std::u32string_view text) {
  for (size_t at = text.find(mark); at != std::u32string_view::npos; at = text.find(mark, at + 1)) {
    const std::u32string_view rest = text.substr(at + mark.size());
    if (rest.empty() || !is_digit(rest[0])) continue;
    return std::u32string(digit_runs(rest).front());
  }
  return {};
}

double share_of_numbers(std::string_view prediction, std::u32string_view wanted) {
  const std::u32string text = code_points(prediction);
  const std::vector<std::u32string_view> numbers = digit_runs(text);
  if (numbers.empty()) return 0;
  const auto right = std::count(numbers.begin(), numbers.end(), wanted);
  return static_cast<double>(right) / static_cast<double>(numbers.size());
}

constexpr std::u32string_view kParagraph = U"Paragraph ";
constexpr std::u32string_view kParagraphZh = U"\u6bb5\u843d";

std::string_view without_leading_line_feeds(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  return text;
}

const ChineseSegmenter& segmenter_of(const MetricInputs& inputs) {
  if (inputs.segmenter == nullptr) throw std::logic_error("a Chinese metric without a segmenter");
  return *inputs.segmenter;
}

double score_of(LongBenchMetric metric, std::string_view prediction, const std::string& truth,
                const MetricInputs& inputs) {
  switch (metric) {
    case LongBenchMetric::qa_f1:
      return qa_f1(prediction, truth);
    case LongBenchMetric::qa_f1_zh:
      return qa_f1_zh(prediction, truth, segmenter_of(inputs));
    case LongBenchMetric::rouge:
      return rouge(prediction, truth);
    case LongBenchMetric::rouge_zh:
      return rouge_zh(prediction, truth, segmenter_of(inputs));
    case LongBenchMetric::classification:
      return classification(prediction, truth, inputs.classes);
    case LongBenchMetric::retrieval:
      return retrieval(prediction, truth);
    case LongBenchMetric::retrieval_zh:
      return retrieval_zh(prediction, truth);
    case LongBenchMetric::count:
      return count_score(prediction, truth);
    case LongBenchMetric::code_sim:
      return code_sim(prediction, truth, inputs.similarity);
  }
  throw std::logic_error("unknown LongBench metric");
}

}  // namespace

double qa_f1(std::string_view prediction, std::string_view truth) {
  const std::u32string normal_prediction = normal_answer(prediction);
  const std::u32string normal_truth = normal_answer(truth);
  return f1_of(split_words(normal_prediction), split_words(normal_truth));
}

double qa_f1_zh(std::string_view prediction, std::string_view truth,
                const ChineseSegmenter& segmenter) {
  const std::vector<std::u32string> predicted = normal_words_zh(prediction, segmenter);
  const std::vector<std::u32string> wanted = normal_words_zh(truth, segmenter);
  return f1_of(views_of(predicted), views_of(wanted));
}

double rouge(std::string_view prediction, std::string_view truth) {
  return rouge_l(code_points(prediction), code_points(truth), kRougeCalls);
}

double rouge_zh(std::string_view prediction, std::string_view truth,
                const ChineseSegmenter& segmenter) {
  return rouge_l(joined_words(prediction, segmenter), joined_words(truth, segmenter),
                 kRougeZhCalls);
}

double classification(std::string_view prediction, std::string_view truth,
                      const std::vector<std::string>& classes) {
  std::vector<std::string_view> named;
  for (const std::string& name : classes) {
    if (prediction.find(name) != std::string_view::npos) named.emplace_back(name);
  }
  for (size_t i = 0; i < named.size(); ++i) {
    const std::string_view name = named[i];
    if (name == truth || truth.find(name) == std::string_view::npos) continue;
    named.erase(std::find(named.begin(), named.end(), name));  // list.remove: the first that equals
  }
  if (std::find(named.begin(), named.end(), truth) == named.end()) return 0;
  return 1.0 / static_cast<double>(named.size());
}

double retrieval(std::string_view prediction, std::string_view truth) {
  return share_of_numbers(prediction, number_after(kParagraph, code_points(truth)));
}

double retrieval_zh(std::string_view prediction, std::string_view truth) {
  return share_of_numbers(prediction, number_after(kParagraphZh, code_points(truth)));
}

double count_score(std::string_view prediction, std::string_view truth) {
  return share_of_numbers(prediction, code_points(truth));
}

bool names_paragraph(std::string_view truth) {
  return !number_after(kParagraph, code_points(truth)).empty();
}

bool names_paragraph_zh(std::string_view truth) {
  return !number_after(kParagraphZh, code_points(truth)).empty();
}

double code_sim(std::string_view prediction, std::string_view truth, Similarity similarity) {
  std::string_view rest = without_leading_line_feeds(prediction);
  std::string_view line;
  for (bool more = true; more;) {
    const size_t end = rest.find('\n');
    const std::string_view next = rest.substr(0, end);
    more = end != std::string_view::npos;
    if (more) rest.remove_prefix(end + 1);
    if (next.find_first_of("`#") != std::string_view::npos) continue;
    if (next.find("//") != std::string_view::npos) continue;
    line = next;
    break;
  }
  return fuzz_ratio(code_points(line), code_points(truth), similarity) / 100.0;
}

std::string first_line(std::string_view prediction) {
  const std::string_view text = without_leading_line_feeds(prediction);
  return std::string(text.substr(0, text.find('\n')));
}

bool scores_first_line(const LongBenchSet& set) {
  return set.category == LongBenchCategory::few_shot;  // trec, triviaqa, samsum, lsht
}

bool needs_segmenter(LongBenchMetric metric) {
  return metric == LongBenchMetric::qa_f1_zh || metric == LongBenchMetric::rouge_zh;
}

double best_score(LongBenchMetric metric, std::string_view prediction,
                  const std::vector<std::string>& answers, const MetricInputs& inputs) {
  double best = 0;
  for (const std::string& answer : answers) {
    best = std::max(best, score_of(metric, prediction, answer, inputs));
  }
  return best;
}

}  // namespace kvsweep::task
