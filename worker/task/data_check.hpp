// `kvsweep data check`: which data sets a folder holds.
#pragma once

#include <ostream>
#include <string>

#include "core/result.hpp"

namespace kvsweep::task {

// Writes one line a data file that a task can read: its name below `data_dir`, rows and SHA-256
// where it is there; then what is missing, with its publisher. Every row is read as a task would
// read it. The error is the first broken file's, after the whole list; missing files are no error.
Status check_data(const std::string& data_dir, std::ostream& out);

}  // namespace kvsweep::task
