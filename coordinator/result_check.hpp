// What a worker reported, checked before it may enter the database. Pure.
#pragma once

#include <vector>

#include "coordinator/evaluation.hpp"
#include "core/measurement.hpp"
#include "core/result.hpp"
#include "core/wire/messages.hpp"

namespace kvsweep::coordinator {

// Every example of every map must exist in the task with this very hash (else the worker reads
// another data set: bad_input), and carry the finite figures that `mode` produces (else numerics).
Status check_measurements(const std::vector<wire::MapMeasurements>& maps, const TaskData& task,
                          RunMode mode);

// A task of at least one example, as many hashes as examples.
Status check_description(const wire::Description& description);

}  // namespace kvsweep::coordinator
