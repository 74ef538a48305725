// The text form of GSM8K as lm-evaluation-harness 0.4 evaluates it (task gsm8k, version 3.0):
// prompts, stop strings, answer filters and the comparison. Shared by every task of that shape.
//
// The regular expressions of the filters are matched by hand: std::regex recurses per character and
// overflows the stack on a long output. Each function names its expression and is exactly
// equivalent to Python's `re` on it (tests/worker/task/make_goldens.py compares 10,000 strings).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/task/task.hpp"

namespace kvsweep::task {

// One problem: the answer ends "#### N".
struct Problem {
  std::string question;
  std::string answer;
};

inline constexpr std::string_view kInvalidAnswer = "[invalid]";

// How one task of GSM8K's shape words its prompts and finds answers.
struct MathStyle {
  std::string before;  // the question
  std::string after;
  std::string delimiter = " ";  // between question and answer of a shot in one text
  std::vector<std::string> stops;
  std::string (*strict)(std::string_view text) = nullptr;  // the second filter
};

// That of lm-eval's task gsm8k: "Question: {q}\nAnswer:", math_stops, strict_match.
const MathStyle& gsm8k_style();

// The question as `style` words it, without a trailing space.
std::string asked(const MathStyle& style, const std::string& question);

// Shots joined by an empty line, each question and answer; then the question.
std::string few_shot_prompt(std::span<const Problem* const> shots, const std::string& question,
                            const MathStyle& style = gsm8k_style());

// "Question:", "</s>", "<|im_end|>".
const std::vector<std::string>& math_stops();

// Filter strict-match: `#### (\-?[0-9\.\,]+)`, group 1 of the first match, or kInvalidAnswer.
// "so #### -1,234.5 and #### 6" -> "-1,234.5". O(length).
std::string strict_match(std::string_view text);

// Filter strict-match of gsm8k_cot: `The answer is (\-?[0-9\.\,]+).`, group 1 of the first match;
// the last dot stands for any character but a newline, for which the number gives up its last
// character where none follows. "The answer is 18." -> "18"; "The answer is 18" -> "1". O(length).
std::string strict_match_cot(std::string_view text);

// Filter strict-match of gsm8k_cot_llama:
// `The final answer is ((-?[$0-9.,]{2,})|(-?[0-9]+))`, the last match. O(length).
std::string strict_match_llama(std::string_view text);

// Filter flexible-extract: `(-?[$0-9.,]{2,})|(-?[0-9]+)`, the last match, or kInvalidAnswer. A
// closing "..." is a match, as it is there. "from 3 to $18." -> "$18.". O(length).
std::string flexible_extract(std::string_view text);

// What both sides of the comparison go through, in this order: delete `,`; delete `\$`; delete
// `(?s).*#### `; delete `\.$` (also before a final newline); lower-case. Only ASCII letters are
// lowered: the other side of the comparison is ASCII, and no other letter lowers to what it can
// hold. "So $1,000 #### 10." -> "10". O(length).
std::string cleaned_answer(std::string_view text);

// `exact_match` uses flexible-extract, as KVTuner's search did; `strict_match` the strict filter.
// `answer` is the flexible one after the clean-up, so that equal answers compare equal. `output` is
// cut at the stops first; the gold is a whole answer ("... #### 18") or its number.
Score score_math(const std::string& gold, const std::string& output,
                 const MathStyle& style = gsm8k_style());

}  // namespace kvsweep::task
