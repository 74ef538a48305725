#include "worker/task/math_task.hpp"

namespace kvsweep::task {

MathTask::MathTask(std::string name, std::shared_ptr<const Problems> problems,
                   std::shared_ptr<const Problems> shot_pool,
                   std::vector<std::vector<uint32_t>> shots)
    : name_(std::move(name)),
      problems_(std::move(problems)),
      shot_pool_(std::move(shot_pool)),
      shots_(std::move(shots)) {}

Result<Example> MathTask::example(int64_t index) const {
  if (index < 0 || index >= size()) {
    return bad_input(name_ + " has no example " + std::to_string(index) + "; it has " +
                     std::to_string(size()) + ", counted from 0");
  }
  const Problem& problem = (*problems_)[static_cast<size_t>(index)];
  std::vector<const Problem*> shots;
  if (!shots_.empty()) {
    for (uint32_t row : shots_[static_cast<size_t>(index)]) shots.push_back(&(*shot_pool_)[row]);
  }
  Example example;
  example.prompt = few_shot_prompt(shots, problem.question);
  example.stops = math_stops();
  example.gold = problem.answer;
  example.hash = example_hash(example);
  return example;
}

Score MathTask::score(const Example& example, const std::string& output) const {
  return score_math(example.gold, output);
}

}  // namespace kvsweep::task
