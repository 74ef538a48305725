// The templates of word_problems: what the generated stories are about.
#pragma once

#include "core/rng.hpp"
#include "worker/task/math_answer.hpp"

namespace kvsweep::task {

// "What is 48+24?" with its one-step answer; for training only. A pure function like the other.
Problem random_drill(Rng& rng);

// One problem of 1 to 4 steps, whose number is its difficulty. A pure function of the state of
// `rng`; takes fewer than 256 draws.
Problem random_word_problem(Rng& rng);

}  // namespace kvsweep::task
