#include "cli/signals.hpp"

#include <signal.h>
#include <unistd.h>

namespace kvsweep::cli {
namespace {

std::atomic<int> counter{0};
static_assert(std::atomic<int>::is_always_lock_free, "the handler may use lock-free atomics only");

void on_signal(int) {
  const int before = counter.fetch_add(1);
  if (before >= 2) ::_exit(130);
  if (before > 0) return;
  // Nothing but write(2) is safe here.
  constexpr char kAnswer[] = "\nkvsweep: finishing what is running; Ctrl-C again stops at once\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kAnswer, sizeof kAnswer - 1);
}

}  // namespace

std::atomic<int>& stop_counter() {
  return counter;
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a blocking wait returns and sees the counter.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace kvsweep::cli
