#include "worker/task/math_task.hpp"

namespace kvsweep::task {
namespace {

// Python's strip() of ASCII text.
std::string stripped(const std::string& text) {
  constexpr const char* kBlanks = " \t\n\r\v\f";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

std::vector<const Problem*> MathTask::shots_of(int64_t index) const {
  std::vector<const Problem*> shots;
  if (parts_.shots.empty()) return shots;
  const size_t list = parts_.shots.size() == 1 ? 0 : static_cast<size_t>(index);
  for (const uint32_t row : parts_.shots[list]) shots.push_back(&(*parts_.shot_pool)[row]);
  return shots;
}

std::string MathTask::gold_of(const Problem& problem) const {
  if (!parts_.gold_is_number) return problem.answer;
  const size_t mark = problem.answer.rfind("####");
  return stripped(mark == std::string::npos ? problem.answer : problem.answer.substr(mark + 4));
}

Result<Example> MathTask::example(int64_t index) const {
  if (index < 0 || index >= size()) return no_example(parts_.protocol, index, size());
  const Problem& problem = (*parts_.problems)[static_cast<size_t>(index)];
  const std::vector<const Problem*> shots = shots_of(index);
  Example example;
  if (parts_.protocol.form == TaskForm::multiturn) {
    for (const Problem* shot : shots) {
      example.turns.push_back({"user", asked(*parts_.style, shot->question)});
      example.turns.push_back({"assistant", shot->answer});
    }
    example.prompt = asked(*parts_.style, problem.question);
  } else {
    example.prompt = few_shot_prompt(shots, problem.question, *parts_.style);
  }
  example.truncation = Truncation::left;
  example.stops = parts_.style->stops;
  example.golds = {gold_of(problem)};
  example.hash = example_hash(example);
  return example;
}

Score MathTask::score(const Example& example, const std::string& output) const {
  return score_math(example.golds.front(), output, *parts_.style);
}

}  // namespace kvsweep::task
