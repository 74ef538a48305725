// Scores from log-likelihoods, the same for all tasks that ask for them.
#pragma once

#include <string>
#include <vector>

#include "core/json.hpp"
#include "worker/task/task.hpp"

namespace kvsweep::task {

// What the model said to one given text.
struct Likelihood {
  double log_likelihood = 0;  // nats, summed over its scored tokens
  int64_t tokens = 0;         // scored
  bool greedy = false;        // every token is the likeliest one
};

// lm-eval's multiple choice: exact_match (its acc) is 1 when the choice of the largest
// log-likelihood is a gold, strict_match (acc_norm) when that of the largest log-likelihood per
// character of the choice is. The first of equals. `likelihoods` in the order of the choices, at
// least one; the answer is the choice that acc takes.
Score score_choices(const Example& example, const std::vector<Likelihood>& likelihoods);

// Mean nats per token of the first gold choice, or of the first choice when none is a gold.
double gold_nll(const Example& example, const std::vector<Likelihood>& likelihoods);

// Of all windows of a text together.
Likelihood sum(const std::vector<Likelihood>& windows);

// What a measurement's text is: {"log_likelihoods", "tokens", "greedy"}, in the order of the
// choices; of a given text {"log_likelihood", "tokens"}, and "words" where perplexity is per word.
Json figures_of_choices(const std::vector<Likelihood>& likelihoods);
Json figures_of_text(const Example& example, const Likelihood& all);

}  // namespace kvsweep::task
