// Who this worker is and what its machine offers.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/messages.hpp"
#include "worker/service/worker_options.hpp"

namespace kvsweep::service {

int available_cores();         // that this process may run on
std::string processor_name();  // "AMD EPYC 7763", or "unknown processor"
int64_t memory_bytes();        // of the machine; 0 when unknown
std::string host_name();

// `worker_id` given, or HOST-PID.
wire::Hello make_hello(const WorkerOptions& options, const std::string& version, int threads,
                       const std::string& numerics_class);

}  // namespace kvsweep::service
