// `kvsweep-worker --calibrate`: runs examples of a task under the unquantized cache and writes how
// large keys and values became (core/ranges.hpp).
#pragma once

#include "core/result.hpp"
#include "worker/service/worker_options.hpp"

namespace kvsweep::service {

// Writes a ranges file to options.out, or to standard output when that is empty. The same model,
// examples and numerics class give the same file. Errors: as loading a model and running a task;
// bad_input when a layer's keys or values were all 0, from which no constant follows.
Status calibrate(const WorkerOptions& options, int threads);

}  // namespace kvsweep::service
