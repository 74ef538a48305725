// The metrics of LongBench (Bai et al., arXiv 2308.14508), equal to its official metrics.py under
// eval.py, with jieba 0.42.1, rouge 1.0.1 and fuzzywuzzy 0.18: each in [0, 1], to the last bit.
// Oddities of the official code are kept: scores are to be compared with published ones.
// Texts are UTF-8; an invalid byte counts as U+FFFD. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/longbench.hpp"
#include "worker/task/chinese_segmenter.hpp"
#include "worker/task/text_similarity.hpp"

namespace kvsweep::task {

// Words in common, each as often as on both sides (F1). Both texts are lowered, lose ASCII
// punctuation, then the words a, an, the. "The cat sat." against "a cat": 2/3.
double qa_f1(std::string_view prediction, std::string_view truth);

// The same over jieba's words, each lowered and without ASCII and CJK punctuation or white space.
double qa_f1_zh(std::string_view prediction, std::string_view truth,
                const ChineseSegmenter& segmenter);

// rouge_l.hpp, over the texts; and over jieba's words joined by spaces.
double rouge(std::string_view prediction, std::string_view truth);
double rouge_zh(std::string_view prediction, std::string_view truth,
                const ChineseSegmenter& segmenter);

// 1 / (class names that occur in the prediction) when the truth is among them, else 0. Names that
// are proper parts of the truth are taken off that list first, but after each removal the official
// loop skips one name.
double classification(std::string_view prediction, std::string_view truth,
                      const std::vector<std::string>& classes);

// The share of the numbers in the prediction that are written like the number of the truth: the
// first after "Paragraph " (retrieval) or "段落" (retrieval_zh), or the whole truth (count).
double retrieval(std::string_view prediction, std::string_view truth);
double retrieval_zh(std::string_view prediction, std::string_view truth);
double count_score(std::string_view prediction, std::string_view truth);

// False where the official code stops with an exception: the truth names no paragraph. `retrieval`
// and `retrieval_zh` then give 0; data with such a truth should be refused.
bool names_paragraph(std::string_view truth);
bool names_paragraph_zh(std::string_view truth);

// fuzz_ratio / 100 of the first line of the prediction without `, # and // (leading line feeds
// dropped; "" when there is none) and the truth.
double code_sim(std::string_view prediction, std::string_view truth,
                Similarity similarity = Similarity::difflib);

// eval.py's cut for trec, triviaqa, samsum and lsht: leading line feeds dropped, then the first
// line.
std::string first_line(std::string_view prediction);
bool scores_first_line(const LongBenchSet& set);

struct MetricInputs {
  std::vector<std::string> classes;             // for classification
  const ChineseSegmenter* segmenter = nullptr;  // for qa_f1_zh and rouge_zh; not owned
  Similarity similarity = Similarity::difflib;  // for code_sim
};

// True for the two metrics that throw std::logic_error without a segmenter.
bool needs_segmenter(LongBenchMetric metric);

// The greatest score over the answers; 0 without answers.
double best_score(LongBenchMetric metric, std::string_view prediction,
                  const std::vector<std::string>& answers, const MetricInputs& inputs);

}  // namespace kvsweep::task
