// Service: the life of a worker: hello, ready, lease, run, result until acknowledged, leave.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/messages.hpp"
#include "worker/service/unit_runner.hpp"

namespace kvsweep::service {

struct ServiceOptions {
  std::string endpoint;
  wire::Hello hello;            // who we are
  int64_t idle_timeout_ms = 0;  // leave after so long without a coordinator; 0 = never
  bool once = false;            // leave after one unit
};

// Exit statuses of kvsweep-worker.
inline constexpr int kExitDone = 0;  // drained, asked to stop, or --once
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRefused = 3;      // by the coordinator, or another protocol version
inline constexpr int kExitIdleTimeout = 4;  // no coordinator for --idle-timeout seconds

// Serves the coordinator at `options.endpoint` until there is a reason to leave; the exit status.
// Installs the handlers of SIGTERM and SIGINT. Call once, from the main thread: it does the I/O,
// `runner` works on a thread of its own.
//
// A result is kept and sent again until it is acknowledged, also to another coordinator process at
// the same address. What the coordinator does not know (a restarted one, or another connection) it
// answers with a Welcome that nobody asked for; then we say Hello again, send what is not
// acknowledged, name what is running, and only then ask for work.
int serve(const ServiceOptions& options, UnitRunner& runner);

}  // namespace kvsweep::service
