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

// Immutable; const methods are thread-safe.
class MathTask final : public Task {
 public:
  // `shots[i]` holds the rows of `shot_pool` in the prompt of example i, in order; an empty `shots`
  // means no shots. `name` ("gsm8k/test") starts error messages.
  MathTask(std::string name, std::shared_ptr<const Problems> problems,
           std::shared_ptr<const Problems> shot_pool, std::vector<std::vector<uint32_t>> shots);

  int64_t size() const override { return static_cast<int64_t>(problems_->size()); }
  Result<Example> example(int64_t index) const override;
  Score score(const Example& example, const std::string& output) const override;

 private:
  std::string name_;
  std::shared_ptr<const Problems> problems_;
  std::shared_ptr<const Problems> shot_pool_;
  std::vector<std::vector<uint32_t>> shots_;
};

}  // namespace kvsweep::task
