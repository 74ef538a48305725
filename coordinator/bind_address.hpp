// Which addresses the coordinator may bind without authentication.
#pragma once

#include <string>

#include "core/result.hpp"

namespace kvsweep::coordinator {

// True for 127.0.0.0/8, localhost, [::1] and ipc.
bool is_loopback(const std::string& endpoint);

// Error (bad_input) when `endpoint` is not tcp://HOST:PORT (PORT may be *) or ipc://PATH, or when
// it is reachable from outside this machine and `insecure` is not set.
Status check_bind(const std::string& endpoint, bool insecure);

// Where a process on this machine connects to what was bound: 0.0.0.0 becomes 127.0.0.1.
std::string local_address(const std::string& bound);

// "tcp://localhost:5555" -> "tcp://127.0.0.1:5555", since ZeroMQ binds to numbers only; others
// unchanged.
std::string numeric_loopback(const std::string& endpoint);

}  // namespace kvsweep::coordinator
