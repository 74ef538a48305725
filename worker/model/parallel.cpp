#include "worker/model/parallel.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace kvsweep::model {

void set_threads(int threads) {
  at::set_num_threads(std::max(1, threads));
}

void run_tasks(int64_t count, const std::function<void(int64_t)>& task) {
  const int64_t threads = std::min<int64_t>(count, at::get_num_threads());
  if (threads <= 1) {
    for (int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  std::atomic<int64_t> next{0};
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(i);
  });
}

OneThread::OneThread() : threads_(at::get_num_threads()) {
  set_threads(1);
}

OneThread::~OneThread() {
  set_threads(threads_);
}

}  // namespace kvsweep::model
