// Half of a task's examples, so that a search and its report can share a data set.
#pragma once

#include <memory>

#include "worker/task/task.hpp"

namespace kvsweep::task {

// The examples that belong to the half `protocol.rows`, in their order: the content hash says to
// which one an example belongs (split_home.hpp), so that the halves do not change when the data are
// reordered or cut, and nobody draws them. Where a task has one example alone, one half is empty:
// bad_input. Reads every example of `whole` once.
Result<std::unique_ptr<Task>> half_of(std::unique_ptr<Task> whole, const TaskProtocol& protocol);

}  // namespace kvsweep::task
