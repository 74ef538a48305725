#include "worker/task/ruler/row.hpp"

#include <algorithm>
#include <set>

#include "core/text.hpp"

namespace kvsweep::task::ruler {

Json to_json(const Row& row) {
  return {{"index", row.index},
          {"input", row.input + row.answer_prefix},
          {"outputs", row.outputs},
          {"length", row.length}};
}

// Every unit has a token at least.
int64_t Subtask::max_units(const Material& /*material*/, int64_t length) const {
  return std::max(length, min_units());
}

const std::vector<std::string>& subtask_names() {
  static const std::vector<std::string> names = {"niah_single_1",
                                                 "niah_single_2",
                                                 "niah_single_3",
                                                 "niah_multikey_1",
                                                 "niah_multikey_2",
                                                 "niah_multikey_3",
                                                 "niah_multivalue",
                                                 "niah_multiquery",
                                                 "vt",
                                                 "cwe",
                                                 "fwe"};
  return names;
}

Result<std::unique_ptr<Subtask>> make_subtask(const std::string& name, int64_t length) {
  if (name == "vt") return make_variable_tracking();
  if (name == "cwe") return make_common_words(length);
  if (name == "fwe") return make_frequent_words(length);
  std::unique_ptr<Subtask> niah = make_niah(name);
  if (niah) return niah;
  return bad_input("RULER has no subtask \"" + name + "\" here; there are " +
                   join(subtask_names(), ", "));
}

std::vector<int64_t> sample(int64_t n, int64_t count, Rng& rng) {
  // Floyd's algorithm: every subset is equally likely, and `count` numbers are drawn.
  std::set<int64_t> chosen;
  for (int64_t top = n - count; top < n; ++top) {
    const int64_t drawn = rng.between(0, top);
    if (!chosen.insert(drawn).second) chosen.insert(top);
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<std::string> sentences_of(const std::vector<std::string>& words, int64_t count) {
  std::vector<std::string> sentences;
  std::string open;
  for (int64_t i = 0; i < count; ++i) {
    const std::string& word = words[static_cast<size_t>(i) % words.size()];
    if (!open.empty()) open += ' ';
    open += word;
    const char next = words[static_cast<size_t>(i + 1) % words.size()].front();
    const bool mark = word.back() == '.' || word.back() == '?' || word.back() == '!';
    if (mark && !(next >= 'a' && next <= 'z')) {
      sentences.push_back(std::move(open));
      open.clear();
    }
  }
  if (!open.empty()) sentences.push_back(std::move(open));
  return sentences;
}

std::string random_letters(int count, char first, Rng& rng) {
  std::string letters;
  for (int i = 0; i < count; ++i) letters += static_cast<char>(first + rng.below(26));
  return letters;
}

}  // namespace kvsweep::task::ruler
