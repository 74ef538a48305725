// Workers that die, hang, pause, run out of memory or compute nonsense.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/study_lab.hpp"

namespace kvsweep::test {
namespace {

TEST(Faults, KilledWorkerIsReplacedByAnother) {
  StudyLab lab;
  Process coordinator = lab.coordinator({"lease_ms=600"});
  Process first = lab.worker("w1", "ms=2 die_at=5");
  Process second = lab.worker("w2", "ms=2");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  EXPECT_EQ(first.wait(1000), 128 + SIGKILL);
  expect_finished(lab, 20);
  EXPECT_GE(lab.events("lease_expired"), 1);
}

// The only worker dies in the middle of a unit; the coordinator starts it again.
TEST(Faults, LocalWorkerIsRestarted) {
  StudyLab lab;
  Process coordinator = lab.coordinator(
      {"workers=1", "worker_program=" + program("fake_worker"), "log_dir=" + lab.path("logs")},
      lab.fake("ms=1 die_once=" + lab.path("died")));
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  EXPECT_TRUE(std::filesystem::exists(lab.path("died")));
  expect_finished(lab, 20);
  // Its successor said Hello under the same name, so its lease was not waited for.
  EXPECT_EQ(lab.events("lease_expired"), 1);
}

TEST(Faults, WorkersThatDieAtStartAreGivenUpWithAReason) {
  StudyLab lab;
  Process coordinator =
      lab.coordinator({"workers=1", "worker_program=/bin/ls", "log_dir=" + lab.path("logs")});
  EXPECT_EQ(coordinator.wait(60000), 1);
  const std::string output = lab.output("coordinator");
  EXPECT_NE(output.find("no local worker stays alive"), std::string::npos) << output;
  EXPECT_NE(output.find("unrecognized option"), std::string::npos) << output;  // the end of its log
  EXPECT_EQ(lab.study().status, store::StudyStatus::stopped);
}

TEST(Faults, MissingWorkerProgram) {
  StudyLab lab;
  Process coordinator = lab.coordinator(
      {"workers=1", "worker_program=/nonexistent/worker", "log_dir=" + lab.path("logs")});
  EXPECT_EQ(coordinator.wait(30000), 1);
  EXPECT_NE(lab.output("coordinator").find("/nonexistent/worker"), std::string::npos);
}

TEST(Faults, NoOrphansWhenTheCoordinatorIsKilled) {
  StudyLab lab;
  Process coordinator = lab.coordinator(
      {"workers=2", "worker_program=" + program("fake_worker"), "log_dir=" + lab.path("logs")},
      lab.fake("ms=50"));
  ASSERT_TRUE(eventually(30000, [&] { return lab.runs().size() > 4; }));
  coordinator.signal(SIGKILL);
  coordinator.wait(10000);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const size_t runs = lab.runs().size();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(lab.runs().size(), runs) << "a worker goes on without its coordinator";
}

// The heartbeats of a hung computation go on; only its counters stand still.
TEST(Faults, HungComputationTimesOutAndItsProcessIsReplaced) {
  StudyLab lab;
  Process coordinator = lab.coordinator({"workers=1", "worker_program=" + program("fake_worker"),
                                         "log_dir=" + lab.path("logs"), "stall_ms=1000"},
                                        lab.fake("hang_once=" + lab.path("hung")));
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 20);
  EXPECT_NE(lab.output("coordinator").find("\"class\":\"timeout\""), std::string::npos);
}

// A worker is stopped (as by a suspended machine) in the middle of a unit, its lease runs out and
// the unit goes to another; then it wakes up and reports.
TEST(Faults, LateResultIsKeptOnce) {
  StudyLab lab({.trials = 10});
  Process coordinator = lab.coordinator({"lease_ms=500"});
  Process sleeper = lab.worker("w1", "ms=40");
  ASSERT_TRUE(eventually(30000, [&] { return lab.runs().size() >= 3; }));
  sleeper.signal(SIGSTOP);
  Process other = lab.worker("w2", "ms=5");
  ASSERT_TRUE(eventually(30000, [&] { return lab.told() >= 3; }));
  sleeper.signal(SIGCONT);
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 10);
  EXPECT_GE(lab.events("lease_expired"), 1);
  EXPECT_EQ(sleeper.wait(30000), 0) << lab.output("w1");
  const auto info = lab.open().info();
  ASSERT_TRUE(info.ok());
  // Each of the 10 maps on 12 examples, and the baseline generated and forced (its map is also one
  // of the first genomes).
  EXPECT_EQ(info->rows.at("measurements"), 10 * 12 + 12);
}

TEST(Faults, ReleasedUnitIsNotCharged) {
  StudyLab lab({.trials = 8});
  Process coordinator = lab.coordinator({"max_attempts=1"});
  for (int i = 0; i < 8; ++i) {
    Process worker = lab.worker("w1", "ms=100");
    const size_t before = lab.runs().size();
    ASSERT_TRUE(eventually(30000, [&] { return lab.runs().size() > before; }));
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(10000), 0) << lab.output("w1");
  }
  Process worker = lab.worker("w2");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 8);
  EXPECT_GE(lab.events("lease_released"), 4);  // 8, unless the machine is so slow that some finish
  EXPECT_EQ(lab.events("unit_failed"), 0);
}

TEST(Faults, MemoryAndOtherExceptionsAreRetried) {
  StudyLab lab({.trials = 10});
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1", "oom_at=4 throw_at=9");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 10);
  EXPECT_EQ(lab.events("unit_failed"), 2);
  const std::string output = lab.output("coordinator");
  EXPECT_NE(output.find("\"class\":\"oom\""), std::string::npos);
  EXPECT_NE(output.find("ordered to throw"), std::string::npos);
}

void expect_failed_k2(const StudyLab& lab, const std::string& failure_class) {
  int failed = 0;
  for (const store::TrialRow& trial : lab.trials()) {
    const auto map = lab.open().map_by_id(trial.map_id);
    ASSERT_TRUE(map.ok());
    const bool k2 = info(map->layers[0].of(0).k).bits == 2;
    EXPECT_EQ(trial.state == store::TrialState::failed, k2);
    if (!k2) continue;
    ++failed;
    EXPECT_EQ(trial.failure.substr(0, failure_class.size()), failure_class) << trial.failure;
  }
  EXPECT_GT(failed, 0);
  // Not one example of the region was tried twice.
  expect_every_example_run_once(lab);
}

TEST(Faults, NumericsFailuresFailTheirTrialsOnly) {
  StudyLab lab({.trials = 40});
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1", "nan_k2=1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 40);
  expect_failed_k2(lab, "numerics: ");
}

TEST(Faults, BadInputFailsTheTrialWhenEveryWorkerSaysSo) {
  StudyLab lab({.trials = 40});
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1", "bad_k2=1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 40);
  expect_failed_k2(lab, "bad_input: ");
}

// Every map but the baseline pair fails: something is wrong, and 200 trials would not tell more.
TEST(Faults, TooManyFailuresStopTheStudy) {
  StudyLab lab({.trials = 200});
  std::ofstream(lab.path("spec.yaml"))
      << "name: lab\nmodel: " << lab.model()
      << "\nsearch: {trials: 200, population: 6, seed: 3, groups: 4, candidates: [K2V2, K2V4, "
         "K2V8]}"
         "\nobjective_task: {name: word_problems, split: search, examples: 4, metric: kl}\n";
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1", "nan_k2=1");
  EXPECT_EQ(coordinator.wait(60000), 1);
  const store::StudyRow study = lab.study();
  EXPECT_EQ(study.status, store::StudyStatus::failed);
  EXPECT_EQ(study.status_reason.substr(0, 25), "10 of 10 trials failed, m") << study.status_reason;
}

}  // namespace
}  // namespace kvsweep::test
