// What `check` says about the space of a study, exactly where it is small enough.
#pragma once

#include <cstdint>
#include <optional>

#include "core/geometry.hpp"
#include "core/result.hpp"
#include "core/study_spec.hpp"

namespace kvsweep::cli {

struct SpaceCheck {
  double size = 0;  // maps
  int groups = 0;
  int candidates = 0;      // of the group with most
  double least_bytes = 0;  // all at spec.at
  double most_bytes = 0;
  double baseline_bytes = 0;
  double least_bits = 0;
  double most_bits = 0;
  bool exact = true;      // whether `fitting` was counted, or estimated from a sample
  int64_t looked_at = 0;  // maps
  double fitting = 0;     // maps within limits.max_bits
};

// Counts up to 2^16 maps; samples 20,000 of a larger space (seeded, so the answer is the same each
// time). Error (bad_input): the spec does not fit the model, or no map fits the limit.
Result<SpaceCheck> check_space(const StudySpec& spec, const ModelGeometry& geometry);

}  // namespace kvsweep::cli
