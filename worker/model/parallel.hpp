// Independent tasks on libtorch's thread pool.
#pragma once

#include <cstdint>
#include <functional>

namespace kvsweep::model {

// Sets how many threads `run_tasks` and ATen use in this process.
void set_threads(int threads);

// Calls task(i) for every i in [0, count), each once, in no stated order. Threads take the next
// task when they are free, so tasks may differ in length; what a task computes must not depend on
// which thread runs it. Exceptions reach the caller.
void run_tasks(int64_t count, const std::function<void(int64_t)>& task);

}  // namespace kvsweep::model
