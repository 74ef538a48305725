// Units of several maps among processes: the same study as with one map per unit, whoever dies.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "coordinator/fault.hpp"
#include "tests/support/study_lab.hpp"

namespace kvsweep::test {
namespace {

const std::vector<std::string> kJoint = {"maps_per_unit=5", "examples_per_unit=5"};

std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.end(), kJoint.begin(), kJoint.end());
  return more;
}

bool starts_with_k2(const StudyLab& lab, const store::TrialRow& trial) {
  const auto map = lab.open().map_by_id(trial.map_id);
  EXPECT_TRUE(map.ok());
  return map.ok() && info(map->layers[0].of(0).k).bits == 2;
}

// Every trial whose first layer has 2-bit keys has failed in this way, and no other.
void expect_failed_k2_only(const StudyLab& lab, const std::string& failure_class) {
  int failed = 0;
  for (const store::TrialRow& trial : lab.trials()) {
    const bool k2 = starts_with_k2(lab, trial);
    EXPECT_EQ(trial.state == store::TrialState::failed, k2) << trial.failure;
    if (!k2) continue;
    ++failed;
    EXPECT_EQ(trial.failure.substr(0, failure_class.size()), failure_class) << trial.failure;
  }
  EXPECT_GT(failed, 0);
}

TEST(JointUnits, EveryExampleOfEveryMapIsRunOnce) {
  StudyLab lab({.trials = 40});
  Process coordinator = lab.coordinator(kJoint);
  Process worker = lab.worker("w1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 40);
  expect_every_example_run_once(lab);
  // Candidates are asked for five at a time: told_before grows in steps, not one by one.
  std::vector<int64_t> tells;
  for (const store::TrialRow& trial : lab.trials()) tells.push_back(trial.tells_before);
  EXPECT_EQ(tells[4], tells[0]);
  EXPECT_EQ(tells[9], tells[5]);
  EXPECT_GT(tells[5], tells[4]);
}

TEST(JointUnits, TwoWorkersShareTheCandidates) {
  StudyLab lab({.trials = 30});
  Process coordinator = lab.coordinator(kJoint);
  Process first = lab.worker("w1", "ms=1");
  Process second = lab.worker("w2", "ms=1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 30);
  expect_every_example_run_once(lab);
}

TEST(JointUnits, NumericsFailuresFailTheirMapsOnly) {
  StudyLab lab({.trials = 40});
  Process coordinator = lab.coordinator(kJoint);
  Process worker = lab.worker("w1", "nan_k2=1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 40);
  expect_failed_k2_only(lab, "numerics: ");
}

// The worker refuses the whole unit for the sake of one map.
TEST(JointUnits, OneBadMapDoesNotFailTheOthers) {
  StudyLab lab({.trials = 40});
  Process coordinator = lab.coordinator(kJoint);
  Process worker = lab.worker("w1", "bad_k2=1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 40);
  expect_failed_k2_only(lab, "bad_input: ");
}

// With one attempt per unit any charge would fail a trial.
TEST(JointUnits, FailuresOfAJointUnitAreChargedToNoMap) {
  StudyLab lab({.trials = 20});
  Process coordinator = lab.coordinator(with({"max_attempts=1"}));
  Process worker = lab.worker("w1", "oom_at=7 throw_at=12");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 20);
  EXPECT_EQ(lab.events("unit_failed"), 2);
  for (const store::TrialRow& trial : lab.trials()) {
    EXPECT_NE(trial.state, store::TrialState::failed) << trial.failure;
  }
}

TEST(JointUnits, KilledWorkersAreReplaced) {
  StudyLab lab;
  Process coordinator = lab.coordinator(with({"lease_ms=600"}));
  Process first = lab.worker("w1", "ms=2 die_at=6");
  Process second = lab.worker("w2", "ms=2 die_at=9");
  Process third = lab.worker("w3", "ms=2");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 20);
  EXPECT_GE(lab.events("lease_expired"), 1);
}

TEST(JointUnits, LateResultsAreKeptOnce) {
  StudyLab lab({.trials = 10});
  Process coordinator = lab.coordinator(with({"lease_ms=500"}));
  Process sleeper = lab.worker("w1", "ms=20");
  ASSERT_TRUE(eventually(30000, [&] { return lab.runs().size() >= 30; }));
  sleeper.signal(SIGSTOP);
  Process other = lab.worker("w2", "ms=2");
  ASSERT_TRUE(eventually(30000, [&] { return lab.told() >= 3; }));
  sleeper.signal(SIGCONT);
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 10);
  const auto info = lab.open().info();
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->rows.at("measurements"), 10 * 12 + 12);  // as in Faults.LateResultIsKeptOnce
}

// Dead in the middle of a batch of candidates, with and without its worker: the search goes on as
// if nothing had happened.
void die_repeatedly(const std::string& point, bool kill_worker_too) {
  StudyLab quiet({.trials = 30});
  {
    Process coordinator = quiet.coordinator(kJoint);
    Process worker = quiet.worker("w1");
    ASSERT_EQ(coordinator.wait(60000), 0) << quiet.output("coordinator");
  }
  StudyLab lab({.trials = 30});
  Process worker = lab.worker("w1");
  int deaths = 0;
  for (int attempt = 0; attempt < 30; ++attempt) {
    std::map<std::string, std::string> fault;
    if (deaths < 4) fault["KVSWEEP_FAULT"] = point + ":" + std::to_string(2 + attempt % 3);
    Process coordinator = lab.coordinator(kJoint, fault);
    const std::optional<int> status = coordinator.wait(60000);
    ASSERT_TRUE(status.has_value()) << lab.output("coordinator");
    if (*status == 0) break;
    ASSERT_EQ(*status, coordinator::kFaultExit) << lab.output("coordinator");
    ++deaths;
    if (!kill_worker_too) continue;
    worker.signal(SIGKILL);
    worker.wait(10000);
    worker = lab.worker("w1");
  }
  EXPECT_EQ(deaths, 4);
  expect_finished(lab, 30);
  EXPECT_EQ(lab.genomes(), quiet.genomes());
  if (!kill_worker_too) expect_every_example_run_once(lab);
}

TEST(JointUnits, CoordinatorKilledAfterCommit) {
  die_repeatedly("exit_after_commit", false);
}

TEST(JointUnits, CoordinatorAndWorkerKilledBeforeCommit) {
  die_repeatedly("exit_before_commit", true);
}

TEST(JointUnits, KilledAtRandomMomentsItsWorkerGoesOn) {
  StudyLab lab({.trials = 40});
  Process worker = lab.worker("w1", "ms=2");
  for (int round = 1; round <= 3; ++round) {
    Process coordinator = lab.coordinator(kJoint);
    ASSERT_TRUE(eventually(60000, [&] { return lab.told() >= 9 * round; }));
    coordinator.signal(SIGKILL);
    ASSERT_EQ(coordinator.wait(10000), 128 + SIGKILL);
  }
  Process coordinator = lab.coordinator(kJoint);
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 40);
  expect_every_example_run_once(lab);
}

}  // namespace
}  // namespace kvsweep::test
