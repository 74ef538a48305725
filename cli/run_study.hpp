// What `tune` and `coordinator` share: one run of a spec, from reading it to the last table.
#pragma once

#include <string>

#include "cli/common_options.hpp"
#include "cli/verb.hpp"

namespace kvsweep::cli {

struct StudyRun {
  std::string spec;
  DatabaseOptions database;
  LogOptions log;
  RunOptions run;
  bool local_workers = true;
  bool json = false;

  Result<int> operator()(Context& context) const;
};

// Reads a spec; algorithm names are checked against the search part's list.
Result<SweepSpec> read_checked_spec(const std::string& path);

}  // namespace kvsweep::cli
