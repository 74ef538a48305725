#include "cli/study_cost.hpp"

#include <algorithm>
#include <vector>

#include "cli/trial_view.hpp"

namespace kvsweep::cli {
namespace {

constexpr size_t kLeastTrials = 3;

// Trials overlap when there are several workers, so the time between ends is what one costs; the
// median keeps a pause (an interrupted study) from counting.
std::optional<double> seconds_between_ends(const std::vector<store::TrialRow>& trials) {
  std::vector<int64_t> ends;
  for (const store::TrialRow& trial : trials) {
    const bool measured = trial.number >= 0 && trial.state == store::TrialState::complete &&
                          !trial.reused && trial.finished_utc_ms > 0;
    if (measured) ends.push_back(trial.finished_utc_ms);
  }
  if (ends.size() < kLeastTrials) return std::nullopt;
  std::sort(ends.begin(), ends.end());
  std::vector<int64_t> gaps;
  for (size_t i = 1; i < ends.size(); ++i) gaps.push_back(ends[i] - ends[i - 1]);
  std::nth_element(gaps.begin(), gaps.begin() + static_cast<long>(gaps.size() / 2), gaps.end());
  return static_cast<double>(gaps[gaps.size() / 2]) / 1000;
}

int64_t examples_of(const std::vector<store::TrialRow>& trials) {
  int64_t most = 0;
  for (const store::TrialRow& trial : trials) most = std::max(most, trial.examples);
  return most;
}

}  // namespace

Result<std::optional<StudyCost>> estimate_cost(const store::Store& store, const StudySpec& spec) {
  KVSWEEP_ASSIGN(std::vector<store::StudyRow> studies, store.studies());
  std::sort(studies.begin(), studies.end(),
            [](const auto& a, const auto& b) { return a.created_utc_ms > b.created_utc_ms; });
  for (const store::StudyRow& study : studies) {
    const TaskSpec& task = study.spec.objective_task;
    if (study.spec.model != spec.model || task.protocol.name != spec.objective_task.protocol.name ||
        task.metric != spec.objective_task.metric) {
      continue;
    }
    KVSWEEP_ASSIGN(const std::vector<store::TrialRow> trials, store.trials(study.id));
    const std::optional<double> seconds = seconds_between_ends(trials);
    const int64_t measured = examples_of(trials);
    if (!seconds || measured == 0) continue;
    const int64_t wanted =
        spec.objective_task.examples > 0 ? spec.objective_task.examples : measured;
    const double scale = static_cast<double>(wanted) / static_cast<double>(measured);
    return std::optional(StudyCost{*seconds * scale, full_name(study)});
  }
  return std::optional<StudyCost>();
}

}  // namespace kvsweep::cli
