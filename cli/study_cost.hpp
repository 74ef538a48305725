// What a study would take, from what earlier ones took.
#pragma once

#include <optional>
#include <string>

#include "core/result.hpp"
#include "core/study_spec.hpp"
#include "store/store.hpp"

namespace kvsweep::cli {

struct StudyCost {
  double seconds_per_trial = 0;  // wall time, with the workers of that study
  std::string source;            // the study it comes from
};

// From the newest study of the same model folder, task and metric that measured at least three
// trials itself: the median time between the ends of its trials, scaled to the number of examples.
// nullopt when there is none.
Result<std::optional<StudyCost>> estimate_cost(const store::Store& store, const StudySpec& spec);

}  // namespace kvsweep::cli
