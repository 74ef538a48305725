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

// While it lives, one thread is used, also inside the GEMM library; afterwards as many as before.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

}  // namespace kvsweep::model
