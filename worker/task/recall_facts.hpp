// The text of recall: a list of facts, and questions about them.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/rng.hpp"
#include "worker/task/math_answer.hpp"

namespace kvsweep::task {

// Every fact has a key of its own from a fixed list of one-word names and a code of four digits.
class RecallFacts {
 public:
  static constexpr int kMinFacts = 2;
  static constexpr int kMaxFacts = 96;

  // `facts` from kMinFacts to kMaxFacts. A pure function of the state of `rng`.
  RecallFacts(int facts, Rng& rng);

  int size() const { return static_cast<int>(keys_.size()); }
  // "The code of Amir is 4821. The code of Oslo is 1077."
  const std::string& text() const { return text_; }
  // "What is the code of Oslo?" with "The code of Oslo is 1077.\n#### 1077". `fact` in 0..size()-1,
  // in the order of the text.
  Problem ask(int fact) const;

 private:
  std::vector<const char*> keys_;
  std::vector<int> codes_;
  std::string text_;
};

// How many facts a prompt of `length` tokens holds: a fact takes kTokensPerFact and everything else
// kTokensAround in the tokenizer of the reference model (digits alone, every key one token), which
// is also close for other tokenizers that split numbers into digits.
inline constexpr int kTokensPerFact = 11;
inline constexpr int kTokensAround = 12;
int facts_in(int length);

// bad_input, with what is allowed, when a prompt of `length` tokens holds too few or too many
// facts.
Status check_recall_length(int length);

}  // namespace kvsweep::task
