#include "worker/task/word_story.hpp"

#include <stdexcept>

namespace kvsweep::task {
namespace {

int calculate(int left, char op, int right) {
  switch (op) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      if (right != 0 && left % right == 0) return left / right;
      break;
    default:
      break;
  }
  throw std::logic_error("word problem: cannot calculate " + std::to_string(left) + op +
                         std::to_string(right));
}

}  // namespace

void Story::say(const std::string& sentence) {
  if (!question_.empty()) question_ += ' ';
  question_ += sentence;
}

int Story::step(int left, char op, int right, const StepText& text) {
  result_ = calculate(left, op, right);
  if (result_ <= 0) throw std::logic_error("word problem: a result is not positive");
  const std::string terms = std::to_string(left) + op + std::to_string(right);
  const std::string result = std::to_string(result_);
  answer_ += text.before + (text.before.empty() ? "" : " ") + terms + " = " +
             std::string(text.sign) + "<<" + terms + "=" + result + ">>" + result +
             (text.after.empty() ? "" : " " + text.after) + ".\n";
  ++steps_;
  return result_;
}

Problem Story::finish() const {
  if (steps_ == 0) throw std::logic_error("word problem: no calculation");
  return {question_, answer_ + "#### " + std::to_string(result_)};
}

}  // namespace kvsweep::task
