// Perplexity from measurements of tasks that score a given text.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/measurement.hpp"

namespace kvsweep {

struct Perplexity {
  double value = 0;
  std::string_view per;  // "token", or "word" where the task counts words
};

// exp of the negative log-likelihood of all examples together, divided by their scored tokens or by
// the words of the texts as they were. nullopt when there is none, or one is of another kind of
// task.
std::optional<Perplexity> perplexity(const std::vector<Measurement>& measurements);

}  // namespace kvsweep
