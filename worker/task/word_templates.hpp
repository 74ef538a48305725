// The templates of word_problems: what the generated stories are about.
#pragma once

#include "core/rng.hpp"
#include "worker/task/math_answer.hpp"

namespace kvsweep::task {

// One problem of 1 to 4 steps. A pure function of the state of `rng`; takes fewer than 256 draws.
Problem random_word_problem(Rng& rng);

}  // namespace kvsweep::task
