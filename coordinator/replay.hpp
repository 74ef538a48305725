// Replay: brings a fresh algorithm to the state it had when a study was left, from the recorded
// trials alone. Search is a pure function of its asks and tells, so the same interleaving of both
// gives the same state, and with it the same next proposal, as if nobody had stopped it.
#pragma once

#include <vector>

#include "core/result.hpp"
#include "core/study_spec.hpp"
#include "search/algorithms/algorithm.hpp"
#include "store/store.hpp"

namespace kvsweep::coordinator {

// What the algorithm is told of a trial with its final outcome.
search::Told told_of(const store::TrialRow& trial, const LimitsSpec& limits);

// infeasible when the loss is above limits.max_loss, else complete.
store::TrialState state_of(double loss, const LimitsSpec& limits);

struct Replayed {
  int64_t asked = 0;
  int64_t told = 0;
  std::vector<store::TrialRow> pending;  // asked and not told, by number
};

// `trials` by number, without the baseline (-1). Trial n was asked after `tells_before` tells.
// Worked example, two workers: ask 0, ask 1, tell 1, ask 2, tell 0 is recorded as
// (number 0, tells_before 0, tell_order 1), (1, 0, 0), (2, 1, none).
// conflict when the algorithm proposes something else than what is recorded (another version of
// it, or a hand-edited database); O(trials) asks and tells.
Result<Replayed> replay(search::Algorithm& algorithm, const std::vector<store::TrialRow>& trials,
                        const LimitsSpec& limits);

}  // namespace kvsweep::coordinator
