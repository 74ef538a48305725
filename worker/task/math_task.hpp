// MathTask: a task in GSM8K's shape, whatever its problems come from.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/task/math_answer.hpp"
#include "worker/task/task.hpp"

namespace kvsweep::task {

using Problems = std::vector<Problem>;

struct MathTaskParts {
  TaskProtocol protocol;
  std::shared_ptr<const Problems> problems;
  std::shared_ptr<const Problems> shot_pool;
  // shots[i] holds the rows of `shot_pool` in the prompt of example i, in order; a single list is
  // that of all examples; empty means no shots.
  std::vector<std::vector<uint32_t>> shots;
  const MathStyle* style = &gsm8k_style();  // outlives the task
  bool gold_is_number = false;  // what follows the last "####" of the answer, without blanks
};

// Immutable; const methods are thread-safe. Forms: text and chat have shots and question in one
// text; in multiturn each shot is a message and its answer, without the delimiter (lm-eval's
// fewshot_as_multiturn). Prompts that are too long lose their beginning, as in lm-eval.
class MathTask final : public Task {
 public:
  explicit MathTask(MathTaskParts parts) : parts_(std::move(parts)) {}

  int64_t size() const override { return static_cast<int64_t>(parts_.problems->size()); }
  Result<Example> example(int64_t index) const override;
  Score score(const Example& example, const std::string& output) const override;

 private:
  std::vector<const Problem*> shots_of(int64_t index) const;
  std::string gold_of(const Problem& problem) const;

  MathTaskParts parts_;
};

}  // namespace kvsweep::task
