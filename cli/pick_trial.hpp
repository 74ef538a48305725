// A trial by what a user calls it.
#pragma once

#include <string>

#include "cli/trial_view.hpp"
#include "core/result.hpp"
#include "store/store.hpp"

namespace kvsweep::cli {

// `name`: a number, or "baseline". Error (bad_input, not_found) says which numbers there are.
Result<TrialView> pick_trial(const store::Store& store, const store::StudyRow& study,
                             const std::string& name);

}  // namespace kvsweep::cli
