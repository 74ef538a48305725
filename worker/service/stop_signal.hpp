// SIGTERM and SIGINT: the first asks the worker to leave, the second ends it at once.
#pragma once

#include "core/result.hpp"

namespace kvsweep::service {

// Installs the handlers. `wake_fd` (an eventfd) is written when the first signal arrives.
void install_stop_signals(int wake_fd);
bool stop_requested();

// Has the kernel kill this process when the thread that started it ends. Error (conflict) when that
// has happened already: `parent` is no longer our parent.
Status exit_with_parent(int parent);

}  // namespace kvsweep::service
