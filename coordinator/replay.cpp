#include "coordinator/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvsweep::coordinator {

namespace {

constexpr double kLeastScale = 1e-6;  // a limit of 0 still needs a relative violation

Error diverged(int64_t number) {
  return {ErrorCode::conflict,
          fmt::format("the search proposes another map than the database records for trial {}; it "
                      "was written by another version of the search, so give the study a new name",
                      number)};
}

}  // namespace

store::TrialState state_of(double loss, const LimitsSpec& limits) {
  const bool over = limits.max_loss && loss > *limits.max_loss;
  return over ? store::TrialState::infeasible : store::TrialState::complete;
}

search::Told told_of(const store::TrialRow& trial, const LimitsSpec& limits) {
  search::Told told{.number = trial.number, .genome = trial.genome};
  told.objectives = {.bytes = trial.bytes, .loss = trial.loss.value_or(0)};
  if (trial.state == store::TrialState::failed) {
    told.outcome = search::Outcome::failed;
  } else if (trial.state == store::TrialState::infeasible) {
    told.outcome = search::Outcome::infeasible;
    const double limit = limits.max_loss.value_or(0);
    told.violation = (told.objectives.loss - limit) / std::max(std::abs(limit), kLeastScale);
  }
  return told;
}

Result<Replayed> replay(search::Algorithm& algorithm, const std::vector<store::TrialRow>& trials,
                        const LimitsSpec& limits) {
  std::vector<const store::TrialRow*> tells;
  Replayed replayed;
  for (const store::TrialRow& trial : trials) {
    if (trial.tell_order >= 0) {
      tells.push_back(&trial);
    } else {
      replayed.pending.push_back(trial);
    }
  }
  std::sort(tells.begin(), tells.end(),
            [](const auto* a, const auto* b) { return a->tell_order < b->tell_order; });
  const auto tell_up_to = [&](int64_t count) {
    const auto all = static_cast<int64_t>(tells.size());
    while (replayed.told < std::min(count, all)) {
      algorithm.tell(told_of(*tells[replayed.told++], limits));
    }
  };
  for (const store::TrialRow& trial : trials) {
    tell_up_to(trial.tells_before);
    const std::optional<search::Proposal> proposal = algorithm.ask();
    if (!proposal || proposal->number != trial.number || proposal->genome != trial.genome) {
      return diverged(trial.number);
    }
    ++replayed.asked;
  }
  tell_up_to(static_cast<int64_t>(tells.size()));
  return replayed;
}

}  // namespace kvsweep::coordinator
