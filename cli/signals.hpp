// Ctrl-C and SIGTERM as a counter: 1 = drain, 2 = stop at once.
#pragma once

#include <atomic>

namespace kvsweep::cli {

// The counter that the handler raises; one per process.
std::atomic<int>& stop_counter();

// From now on SIGINT and SIGTERM raise the counter, and a third one ends the process. SIGPIPE is
// ignored: a reader of our progress that goes away must not end a study.
void catch_signals();

}  // namespace kvsweep::cli
