// StudyRun: the life of one study, as a state machine that never blocks:
//
//   waiting    no worker yet: the first to be admitted fixes the numerics class
//   baseline   tasks are described, the baseline is measured
//   searching  ask, look up, lend, tell, until the budget is spent or the space exhausted
//   reporting  baseline and final front measured again on the report tasks
//   done       finished or failed; stopped when interrupted
//
// Everything it decides is in the store before anyone acts on it, and it is rebuilt from the store
// alone (replay.hpp).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/baseline_run.hpp"
#include "coordinator/driver.hpp"
#include "coordinator/report_run.hpp"
#include "coordinator/study_space.hpp"
#include "coordinator/workload.hpp"
#include "core/clock.hpp"
#include "search/algorithms/algorithm.hpp"
#include "search/pareto/objectives.hpp"
#include "store/store.hpp"

namespace kvsweep::coordinator {

struct StudyOptions {
  WorkloadOptions workload;
  double abort_failure_share = 0.5;
};

class StudyRun final : public Driver {
 public:
  // Reads the model folder's config and hash, creates or resumes the study and replays its trials.
  static Result<std::unique_ptr<StudyRun>> open(const std::string& sweep, const StudySpec& spec,
                                                store::Store& store, const Clock& clock,
                                                const StudyOptions& options);

  const store::StudyRow& row() const { return study_; }

  Workload& workload() override { return workload_; }
  std::optional<std::string> refuses(const wire::Hello& worker) const override;
  Status admitted(const wire::Hello& worker) override;
  Status step() override;
  Result<bool> more() override;
  bool finished() const override { return phase_ == Phase::done; }
  Status interrupted() override;
  Status fail(const std::string& reason) override;
  StudyProgress progress() const override;
  int64_t news() const override { return news_; }

 private:
  enum class Phase { waiting, baseline, searching, reporting, done };

  StudyRun(store::StudyRow study, StudySpace space, store::Store& store, const Clock& clock,
           const StudyOptions& options);
  Status prepare();
  Status restore();
  Status start_search();
  Status step_baseline();
  Status step_search();
  Status step_report();
  Result<bool> ask();
  int64_t candidates() const;
  Status begin_trial(store::TrialRow trial);
  Status end_trial(store::TrialRow trial, const Evaluation& evaluation);
  Status judge_trial(store::TrialRow* trial, const Evaluation& evaluation) const;
  void count(const store::TrialRow& trial);
  std::optional<std::string> abort_reason() const;
  Status finish_search();
  Status end(store::StudyStatus status, const std::string& reason);
  Status event(const std::string& kind, Json detail);
  std::string_view phase_name() const;

  store::StudyRow study_;
  StudySpace space_;
  store::Store& store_;
  const Clock& clock_;
  StudyOptions options_;
  Workload workload_;
  std::unique_ptr<search::Algorithm> algorithm_;
  std::optional<BaselineRun> baseline_;
  std::optional<ReportRun> report_;
  Phase phase_ = Phase::waiting;

  std::map<int, store::TrialRow> running_;  // by evaluation
  std::vector<store::TrialRow> pending_;    // asked by an earlier process, not begun by this one
  int64_t asked_ = 0;
  int64_t told_ = 0;
  int64_t failed_ = 0;
  int64_t reused_ = 0;
  bool exhausted_ = false;

  std::vector<search::Objectives> points_;  // of complete trials
  std::optional<store::TrialRow> best_;
  int64_t measured_here_ = 0;  // trials ended by this process that needed a worker
  int64_t search_began_ms_ = 0;
  int64_t news_ = 0;
};

}  // namespace kvsweep::coordinator
