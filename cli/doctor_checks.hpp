// What `doctor` looks at, one line each.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace kvsweep::cli {

enum class Health { ok, warn, fail };
std::string_view to_string(Health health);

struct Finding {
  Health health = Health::ok;
  std::string what;    // "worker"
  std::string found;   // "/usr/bin/kvsweep-worker, cpu/avx512/..."
  std::string advice;  // what to do; "" when ok
};

struct DoctorInput {
  std::string database;        // path
  std::string data_dir;        // "" = none given
  std::string worker_program;  // "" = search
};

// Runs every check; none of them changes anything but a file made and removed in the database's
// folder. Never fails itself.
std::vector<Finding> examine(const DoctorInput& input);

}  // namespace kvsweep::cli
