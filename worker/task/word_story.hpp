// Story: a word problem under construction. The templates state facts and calculations; the story
// computes the results, so an answer is correct by construction.
#pragma once

#include <string>
#include <string_view>

#include "worker/task/math_answer.hpp"

namespace kvsweep::task {

// One line of the answer: "{before} 3*4 = {sign}<<3*4=12>>12 {after}."; empty texts leave no space.
struct StepText {
  std::string before;
  std::string after;
  std::string_view sign = "";  // "$" before amounts of money
};

// All values stay positive integers; a template that subtracts too much or divides with a remainder
// is a broken invariant (std::logic_error). Not thread-safe.
class Story {
 public:
  void say(const std::string& sentence);  // next sentence of the question
  // Calculates `left op right`, op one of + - * /, writes the line and returns the result.
  int step(int left, char op, int right, const StepText& text);
  int steps() const { return steps_; }
  // The answer is the result of the last step. At least one step must have been made.
  Problem finish() const;

 private:
  std::string question_;
  std::string answer_;
  int result_ = 0;
  int steps_ = 0;
};

}  // namespace kvsweep::task
