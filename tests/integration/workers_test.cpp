// Who may work, and how workers come and go.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/support/study_lab.hpp"
#include "worker/service/service.hpp"

namespace kvsweep::test {
namespace {

TEST(Workers, SixteenAtOnce) {
  StudyLab lab({.trials = 64});
  Process coordinator = lab.coordinator({"lease_ms=20000"});
  std::vector<Process> workers;
  for (int i = 0; i < 16; ++i) workers.push_back(lab.worker("w" + std::to_string(i), "ms=3"));
  ASSERT_EQ(coordinator.wait(120000), 0) << lab.output("coordinator");
  expect_finished(lab, 64);
  EXPECT_EQ(lab.events("worker_joined"), 16);
  EXPECT_EQ(lab.events("lease_expired"), 0);
  for (Process& worker : workers) EXPECT_EQ(worker.wait(30000), 0);  // told to leave at the end
}

TEST(Workers, StartedBeforeTheCoordinator) {
  StudyLab lab({.trials = 6});
  Process worker = lab.worker("w1");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Process coordinator = lab.coordinator();
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 6);
}

TEST(Workers, AnotherNumericsClassIsRefused) {
  StudyLab lab;
  Process coordinator = lab.coordinator();
  Process first = lab.worker("w1", "ms=20");
  ASSERT_TRUE(eventually(30000, [&] { return !lab.runs().empty(); }));
  Process other = lab.worker("w2", "class=fake/2");
  EXPECT_EQ(other.wait(30000), service::kExitRefused);
  const std::string output = lab.output("w2");
  EXPECT_NE(output.find("fake/1"), std::string::npos) << output;
  EXPECT_NE(output.find("fake/2"), std::string::npos) << output;
  EXPECT_EQ(lab.events("worker_refused"), 1);
}

TEST(Workers, ASecondWorkerOfTheSameNameIsRefused) {
  StudyLab lab;
  Process coordinator = lab.coordinator();
  Process first = lab.worker("w1", "ms=20");
  ASSERT_TRUE(eventually(30000, [&] { return !lab.runs().empty(); }));
  Process second = lab.worker("w1");
  EXPECT_EQ(second.wait(30000), service::kExitRefused);
  EXPECT_TRUE(first.running());
}

TEST(Workers, AnotherDataSetIsNoticed) {
  StudyLab lab;
  Process coordinator = lab.coordinator();
  Process first = lab.worker("w1", "ms=5");
  ASSERT_TRUE(eventually(30000, [&] { return !lab.runs().empty(); }));
  Process other = lab.worker("w2", "data=d2 ms=5");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  // What the other reports is refused and done again by the first; nothing of it is recorded.
  expect_finished(lab, 20);
  EXPECT_GE(lab.events("result_refused"), 1);
}

TEST(Workers, LeavesWithoutACoordinator) {
  StudyLab lab;
  Process worker(
      {.words = {program("fake_worker"), "--connect", lab.endpoint(), "--idle-timeout", "1"},
       .output = lab.path("w1.log")});
  EXPECT_EQ(worker.wait(20000), service::kExitIdleTimeout);
  EXPECT_NE(lab.output("w1").find(lab.endpoint()), std::string::npos) << lab.output("w1");
}

TEST(Workers, OnceLeavesAfterOneUnit) {
  StudyLab lab({.trials = 6});
  Process coordinator = lab.coordinator();
  Process once({.words = {program("fake_worker"), "--connect", lab.endpoint(), "--once"},
                .output = lab.path("w1.log")});
  EXPECT_EQ(once.wait(30000), 0) << lab.output("w1");
  EXPECT_TRUE(lab.runs().empty());  // its unit was the description
  Process worker = lab.worker("w2");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
}

TEST(Workers, SecondSignalEndsAtOnce) {
  StudyLab lab;
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1", "hang_at=1");
  ASSERT_TRUE(
      eventually(30000, [&] { return lab.output("w1").find("unit m-") != std::string::npos; }));
  worker.signal(SIGTERM);
  EXPECT_FALSE(worker.wait(300).has_value());  // asks the computation, which does not listen
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(10000), 128 + SIGTERM);
}

TEST(Workers, UsageErrorsNameTheOption) {
  StudyLab lab;
  Process worker({.words = {program("fake_worker"), "--conect", "tcp://127.0.0.1:1"},
                  .output = lab.path("w1.log")});
  EXPECT_EQ(worker.wait(10000), service::kExitUsage);
  EXPECT_NE(lab.output("w1").find("--connect"), std::string::npos) << lab.output("w1");
}

}  // namespace
}  // namespace kvsweep::test
