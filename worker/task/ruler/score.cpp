#include "worker/task/ruler/score.hpp"

#include <algorithm>
#include <map>

namespace kvsweep::task::ruler {
namespace {

bool upper(char c) {
  return c >= 'A' && c <= 'Z';
}
char lowered(char c) {
  return upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lowered(const std::string& text) {
  std::string result;
  for (const char c : text) result += lowered(c);
  return result;
}

std::map<std::string, int> word_counts(const std::string& text, int& total) {
  std::map<std::string, int> counts;
  std::string word;
  total = 0;
  const auto end_word = [&] {
    if (word.empty()) return;
    ++counts[word];
    ++total;
    word.clear();
  };
  for (const char c : lowered(text)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else {
      end_word();
    }
  }
  end_word();
  return counts;
}

}  // namespace

double share_contained(const std::string& text, const std::vector<std::string>& outputs) {
  if (outputs.empty()) return 0;
  std::string said = lowered(text);
  for (char& c : said) {
    if (static_cast<unsigned char>(c) < 32) c = '\n';
  }
  const size_t first = said.find_first_not_of(" \n");
  said = first == std::string::npos ? ""
                                    : said.substr(first, said.find_last_not_of(" \n") - first + 1);
  int found = 0;
  for (const std::string& output : outputs)
    found += said.find(lowered(output)) != std::string::npos;
  return static_cast<double>(found) / static_cast<double>(outputs.size());
}

double rouge1_f(const std::string& text, const std::string& reference) {
  int said = 0;
  int wanted = 0;
  const std::map<std::string, int> a = word_counts(text, said);
  const std::map<std::string, int> b = word_counts(reference, wanted);
  int common = 0;
  for (const auto& [word, count] : a) {
    const auto other = b.find(word);
    if (other != b.end()) common += std::min(count, other->second);
  }
  if (common == 0) return 0;
  const double precision = static_cast<double>(common) / said;
  const double recall = static_cast<double>(common) / wanted;
  return 2 * precision * recall / (precision + recall);
}

}  // namespace kvsweep::task::ruler
