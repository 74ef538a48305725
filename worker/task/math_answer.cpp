#include "worker/task/math_answer.hpp"

#include <algorithm>

namespace kvsweep::task {
namespace {

constexpr std::string_view kMark = "#### ";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_number_char(char c) {
  return is_digit(c) || c == '.' || c == ',';
}
bool is_money_char(char c) {
  return is_number_char(c) || c == '$';
}

// End of the run of characters of a class that starts at `begin`.
template <typename InClass>
size_t run_end(std::string_view text, size_t begin, const InClass& in_class) {
  while (begin < text.size() && in_class(text[begin])) ++begin;
  return begin;
}

// End of the flexible match that starts at `begin`, or `begin` when there is none. Giving up an
// optional minus never helps: neither class holds a minus.
size_t flexible_end(std::string_view text, size_t begin) {
  const size_t body = begin + (text[begin] == '-' ? 1 : 0);
  const size_t money = run_end(text, body, is_money_char);
  if (money - body >= 2) return money;
  const size_t digits = run_end(text, body, is_digit);
  return digits > body ? digits : begin;
}

void erase_all(std::string& text, char c) {
  text.erase(std::remove(text.begin(), text.end(), c), text.end());
}

// `\.$`: Python's $ also matches before a final newline.
void erase_final_dot(std::string& text) {
  size_t end = text.size();
  if (end > 0 && text[end - 1] == '.') {
    text.erase(end - 1);
  } else if (end > 1 && text[end - 1] == '\n' && text[end - 2] == '.') {
    text.erase(end - 2, 1);
  }
}

}  // namespace

const MathStyle& gsm8k_style() {
  static const MathStyle kStyle = {"Question: ", "\nAnswer:", " ", math_stops(), strict_match};
  return kStyle;
}

std::string asked(const MathStyle& style, const std::string& question) {
  return style.before + question + style.after;
}

std::string few_shot_prompt(std::span<const Problem* const> shots, const std::string& question,
                            const MathStyle& style) {
  std::string prompt;
  for (const Problem* shot : shots) {
    prompt += asked(style, shot->question) + style.delimiter + shot->answer + "\n\n";
  }
  return prompt + asked(style, question);
}

const std::vector<std::string>& math_stops() {
  static const std::vector<std::string> kStops = {"Question:", "</s>", "<|im_end|>"};
  return kStops;
}

std::string strict_match(std::string_view text) {
  for (size_t mark = text.find(kMark); mark != std::string_view::npos;
       mark = text.find(kMark, mark + 1)) {
    const size_t begin = mark + kMark.size();
    const size_t body = begin + (begin < text.size() && text[begin] == '-' ? 1 : 0);
    const size_t end = run_end(text, body, is_number_char);
    if (end > body) return std::string(text.substr(begin, end - begin));
  }
  return std::string(kInvalidAnswer);
}

std::string strict_match_cot(std::string_view text) {
  constexpr std::string_view kLead = "The answer is ";
  for (size_t lead = text.find(kLead); lead != std::string_view::npos;
       lead = text.find(kLead, lead + 1)) {
    const size_t begin = lead + kLead.size();
    const size_t body = begin + (begin < text.size() && text[begin] == '-' ? 1 : 0);
    size_t end = run_end(text, body, is_number_char);
    if (end == text.size() || text[end] == '\n') --end;  // the wildcard takes the last character
    if (end > body && end < text.size()) return std::string(text.substr(begin, end - begin));
  }
  return std::string(kInvalidAnswer);
}

std::string strict_match_llama(std::string_view text) {
  constexpr std::string_view kLead = "The final answer is ";
  std::string_view last = kInvalidAnswer;
  for (size_t lead = text.find(kLead); lead != std::string_view::npos;
       lead = text.find(kLead, lead + 1)) {
    const size_t begin = lead + kLead.size();
    if (begin == text.size()) break;
    const size_t end = flexible_end(text, begin);
    if (end > begin) last = text.substr(begin, end - begin);
  }
  return std::string(last);
}

std::string flexible_extract(std::string_view text) {
  std::string_view last = kInvalidAnswer;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = flexible_end(text, begin);
    if (end > begin) {
      last = text.substr(begin, end - begin);
      begin = end;
    } else {
      ++begin;
    }
  }
  return std::string(last);
}

std::string cleaned_answer(std::string_view text) {
  std::string clean(text);
  erase_all(clean, ',');
  erase_all(clean, '$');
  const size_t mark = clean.rfind(kMark);
  if (mark != std::string::npos) clean.erase(0, mark + kMark.size());
  erase_final_dot(clean);
  for (char& c : clean) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return clean;
}

Score score_math(const std::string& gold, const std::string& output, const MathStyle& style) {
  const std::string text = cut_at_stops(output, style.stops);
  const std::string truth = cleaned_answer(gold);
  Score score;
  score.answer = cleaned_answer(flexible_extract(text));
  score.exact_match = score.answer == truth ? 1 : 0;
  score.strict_match = cleaned_answer(style.strict(text)) == truth ? 1 : 0;
  return score;
}

}  // namespace kvsweep::task
