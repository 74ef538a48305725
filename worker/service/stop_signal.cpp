#include "worker/service/stop_signal.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace kvsweep::service {

namespace {

std::atomic<int> signals{0};
std::atomic<int> wake{-1};
static_assert(std::atomic<int>::is_always_lock_free);  // used in a signal handler

void on_signal(int number) {
  const int saved = errno;
  if (signals.fetch_add(1) >= 1) _exit(128 + number);
  const uint64_t one = 1;
  if (write(wake.load(), &one, sizeof(one)) < 0) {
    // Nothing to be done in a handler; the flag is seen at the next heartbeat.
  }
  errno = saved;
}

}  // namespace

void install_stop_signals(int wake_fd) {
  wake = wake_fd;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() {
  return signals.load() > 0;
}

Status exit_with_parent(int parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    return io_error(fmt::format("cannot tie the worker to its parent: {}", std::strerror(errno)));
  }
  if (getppid() != parent) {
    return Error{ErrorCode::conflict,
                 fmt::format("the process {} that started this worker is gone", parent)};
  }
  return {};
}

}  // namespace kvsweep::service
