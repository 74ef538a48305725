// Killing the coordinator, the worker, or both, at the worst moments: nothing is lost, nothing is
// counted twice, and the search goes on as if nothing had happened.
#include <gtest/gtest.h>
#include <signal.h>

#include "coordinator/fault.hpp"
#include "tests/support/study_lab.hpp"

namespace kvsweep::test {
namespace {

constexpr int kTrials = 40;

// What one worker proposes when nothing goes wrong.
const std::vector<std::vector<int>>& undisturbed() {
  static const std::vector<std::vector<int>> genomes = [] {
    StudyLab lab({.trials = kTrials});
    Process coordinator = lab.coordinator();
    Process worker = lab.worker("w1");
    EXPECT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
    return lab.genomes();
  }();
  return genomes;
}

// The coordinator dies at `point`, several times over; its worker lives and keeps its results.
void die_repeatedly(const std::string& point, bool kill_worker_too) {
  StudyLab lab({.trials = kTrials});
  Process worker = lab.worker("w1");
  int deaths = 0;
  for (int attempt = 0; attempt < 30; ++attempt) {
    const std::string fault = point + ":" + std::to_string(3 + attempt % 4);
    const bool last = deaths == 6;
    Process coordinator =
        lab.coordinator({}, last ? std::map<std::string, std::string>{}
                                 : std::map<std::string, std::string>{{"KVSWEEP_FAULT", fault}});
    const std::optional<int> status = coordinator.wait(60000);
    ASSERT_TRUE(status.has_value()) << lab.output("coordinator");
    if (*status == 0) break;
    ASSERT_EQ(*status, coordinator::kFaultExit) << lab.output("coordinator");
    ++deaths;
    if (kill_worker_too) {
      worker.signal(SIGKILL);
      worker.wait(10000);
      worker = lab.worker("w1");
    }
  }
  EXPECT_EQ(deaths, 6);
  expect_finished(lab, kTrials);
  EXPECT_EQ(lab.genomes(), undisturbed());
  if (!kill_worker_too) expect_every_example_run_once(lab);
}

TEST(Resume, KilledBetweenCommitAndAcknowledgement) {
  die_repeatedly("exit_after_commit", false);
}

// The result is not in the database, only with the worker, which sends it again: still not re-run.
TEST(Resume, KilledBeforeCommit) {
  die_repeatedly("exit_before_commit", false);
}

TEST(Resume, BothKilledBetweenCommitAndAcknowledgement) {
  die_repeatedly("exit_after_commit", true);
}

TEST(Resume, BothKilledBeforeCommit) {
  die_repeatedly("exit_before_commit", true);
}

TEST(Resume, KilledAtRandomMoments) {
  StudyLab lab({.trials = kTrials});
  Process worker = lab.worker("w1", "ms=2");
  for (int round = 1; round <= 4; ++round) {
    Process coordinator = lab.coordinator();
    const int64_t until = std::min<int64_t>(kTrials - 4, 7 * round);
    ASSERT_TRUE(eventually(60000, [&] { return lab.told() >= until; }));
    coordinator.signal(SIGKILL);
    ASSERT_EQ(coordinator.wait(10000), 128 + SIGKILL);
  }
  Process coordinator = lab.coordinator();
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, kTrials);
  EXPECT_EQ(lab.genomes(), undisturbed());
  expect_every_example_run_once(lab);
}

TEST(Resume, DrainOnSigtermStopsAndResumes) {
  StudyLab lab({.trials = kTrials});
  {
    Process coordinator = lab.coordinator();
    Process worker = lab.worker("w1", "ms=5");
    ASSERT_TRUE(eventually(60000, [&] { return lab.told() >= 5; }));
    coordinator.signal(SIGTERM);
    EXPECT_EQ(coordinator.wait(30000), 130) << lab.output("coordinator");
    EXPECT_EQ(worker.wait(30000), 0) << lab.output("w1");  // told to leave, and nothing is lost
  }
  const store::StudyRow stopped = lab.study();
  EXPECT_EQ(stopped.status, store::StudyStatus::stopped);
  EXPECT_EQ(stopped.finished_utc_ms, 0);
  int pending = 0;
  for (const store::TrialRow& trial : lab.trials()) {
    pending += trial.state == store::TrialState::asked ? 1 : 0;
    EXPECT_EQ(trial.state == store::TrialState::asked, trial.tell_order < 0);
  }
  EXPECT_LE(pending, 1);  // one worker: at most the trial whose next slice was not lent any more
  EXPECT_LT(static_cast<int>(lab.trials().size()), kTrials);

  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, kTrials);
  EXPECT_EQ(lab.genomes(), undisturbed());
  expect_every_example_run_once(lab);
}

TEST(Resume, SecondSignalStopsAtOnce) {
  StudyLab lab({.trials = kTrials});
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1", "ms=2000");
  ASSERT_TRUE(
      eventually(30000, [&] { return lab.output("w1").find("unit m-") != std::string::npos; }));
  coordinator.signal(SIGTERM);
  EXPECT_FALSE(coordinator.wait(500).has_value());  // waits for the running unit
  coordinator.signal(SIGTERM);
  EXPECT_EQ(coordinator.wait(10000), 130);
  EXPECT_EQ(lab.study().status, store::StudyStatus::stopped);
}

// Another spec under the same name is another study, not a resumption.
TEST(Resume, AnotherSpecIsRefused) {
  StudyLab lab({.trials = 6});
  {
    Process coordinator = lab.coordinator();
    Process worker = lab.worker("w1");
    ASSERT_EQ(coordinator.wait(60000), 0);
  }
  lab.write_spec({.trials = 6, .seed = 99});
  Process coordinator = lab.coordinator();
  EXPECT_EQ(coordinator.wait(30000), 1);
  EXPECT_NE(lab.output("coordinator").find("seed"), std::string::npos) << lab.output("coordinator");
}

}  // namespace
}  // namespace kvsweep::test
