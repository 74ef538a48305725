// Rows of a RULER subtask, made to a length in tokens.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "worker/task/ruler/row.hpp"

namespace kvsweep::task::ruler {

// Tokens of a text in the model's tokenizer. Thread-safe where rows are made on several threads.
using TokenCounter = std::function<Result<int64_t>(const std::string& text)>;

struct GeneratorOptions {
  std::string subtask;
  int64_t length = 4096;  // tokens of prompt, answer prefix and answer together, at most
  int64_t seed = 42;
  std::string stream;  // separates the draws of splits: "search", "report"
  Accept accept;       // of what a row asks for; empty = everything
};

// Row k is a pure function of (options, material, counter, k). The number of haystack units comes
// from a binary search on row 0, less what the first rows differ by; a row that then is too long
// gets fewer, as in RULER, except that a step here is one unit where RULER's is 25 sentences or 500
// words: rows come closer to the length. The length in a row is counted on the whole text, never
// estimated. Immutable after `open`; `row` is thread-safe where the counter is.
class Generator {
 public:
  // `material` must outlive the generator. Error (bad_input): no such subtask; a length that the
  // shortest row does not fit into, with the number of tokens that it takes.
  static Result<Generator> open(const GeneratorOptions& options, const Material& material,
                                TokenCounter counter);

  Result<Row> row(int64_t index) const;
  int answer_tokens() const { return subtask_->answer_tokens(); }

 private:
  Generator(const GeneratorOptions& options, const Material& material, TokenCounter counter,
            std::unique_ptr<Subtask> subtask);
  Result<Row> make(int64_t index, int64_t units) const;
  Status find_units();
  Status allow_for_spread();
  int64_t slack() const { return options_.length / 100; }  // tokens that a row may stay short

  GeneratorOptions options_;
  const Material* material_;
  TokenCounter counter_;
  std::unique_ptr<Subtask> subtask_;
  int64_t units_ = 0;
  double tokens_per_unit_ = 1;
  double around_ = 0;  // tokens beside the units, answer included
};

}  // namespace kvsweep::task::ruler
