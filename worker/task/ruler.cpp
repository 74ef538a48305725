// RULER's subtasks and the needle test as tasks: worker/task/ruler/ made with the model's
// tokenizer.
#include "worker/task/ruler/ruler_task.hpp"

namespace kvsweep::task {

Result<std::unique_ptr<Task>> open_ruler(const TaskProtocol& protocol, const TaskInputs& inputs) {
  const auto tokens = [tokenizer = inputs.tokenizer](const std::string& text) {
    return tokenizer->count(text, true);
  };
  return ruler::open_ruler(protocol, inputs.data_dir, tokens);
}

}  // namespace kvsweep::task
