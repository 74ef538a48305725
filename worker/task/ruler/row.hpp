// RULER (Hsieh et al., COLM 2024; github.com/NVIDIA/RULER): long prompts that are generated to a
// length in the model's own tokens. This is the part that all its subtasks share: what a row is,
// what rows are made from, and how a subtask makes one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"
#include "core/rng.hpp"

namespace kvsweep::task::ruler {

struct Row {
  int64_t index = 0;
  std::string input;                 // the user's turn
  std::string answer_prefix;         // what the assistant's turn begins with
  std::vector<std::string> outputs;  // the reference strings
  int64_t length = 0;                // tokens of the prompt and those kept for the answer
};

// {"index", "input", "outputs", "length"} as the published files have it, where the answer prefix
// is the end of the input.
Json to_json(const Row& row);

// Lines and texts that the user's folder of data sets holds.
struct Material {
  std::vector<std::string> adjectives;  // of a magic key "adjective-noun"
  std::vector<std::string> nouns;
  std::vector<std::string> words;  // nouns, adjectives and verbs, sorted, each once
  std::vector<std::string> essay;  // words of a long text, in order
};

// Reads DATA_DIR/ruler/{noun,adjective,verb}list.txt; with `essay`, also the text
// DATA_DIR/ruler/essay.txt or, where that is absent, DATA_DIR/calib/tinyshakespeare.txt (in the
// public domain; RULER's own essays are not free to share). Errors name the file.
Result<Material> load_material(const std::string& data_dir, bool essay);

// Draws what a row is about; says whether a draw may be used (rows of one split only).
using Accept = std::function<bool(const std::string& facts)>;

// What a row says but for its length.
struct Text {
  std::string input;
  std::string answer_prefix;
  std::vector<std::string> outputs;
};

// One subtask. Immutable; thread-safe.
class Subtask {
 public:
  virtual ~Subtask() = default;
  virtual int answer_tokens() const = 0;  // kept for the answer
  virtual bool needs_essay() const { return false; }
  // Smallest and largest number of haystack units, given the wanted length in tokens.
  virtual int64_t min_units() const = 0;
  virtual int64_t max_units(const Material& material, int64_t length) const;
  // A pure function of its arguments and of the state of `rng`. What the row asks for does not
  // depend on `units`.
  virtual Text text(const Material& material, int64_t units, const Accept& accept,
                    Rng& rng) const = 0;
};

// niah_single_1..3, niah_multikey_1..3, niah_multivalue, niah_multiquery, vt, cwe, fwe.
const std::vector<std::string>& subtask_names();
// `length` in tokens: cwe repeats its words less and fwe knows fewer in short prompts. Error
// (bad_input) names the subtasks there are.
Result<std::unique_ptr<Subtask>> make_subtask(const std::string& name, int64_t length);

// --- for the files beside this one
std::unique_ptr<Subtask> make_niah(const std::string& name);  // nullptr: no such
std::unique_ptr<Subtask> make_variable_tracking();
std::unique_ptr<Subtask> make_common_words(int64_t length);
std::unique_ptr<Subtask> make_frequent_words(int64_t length);

inline constexpr const char* kNoise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

// `count` different numbers below `n` in ascending order; count <= n.
std::vector<int64_t> sample(int64_t n, int64_t count, Rng& rng);
// The first `count` of `words`, from the start again when there are fewer, as sentences: one ends
// with a mark that no small letter follows.
std::vector<std::string> sentences_of(const std::vector<std::string>& words, int64_t count);
std::string random_letters(int count, char first, Rng& rng);  // 26 letters from `first` on
template <typename T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

}  // namespace kvsweep::task::ruler
