// Workload over a real database file, with the test as its workers.
#include <gtest/gtest.h>

#include "tests/coordinator/workload_fixture.hpp"

namespace kvsweep::coordinator {
namespace {

TEST_F(WorkloadTest, SlicesAreNearlyEqualAndCoverEverything) {
  Workload work = workload(4);
  describe(work);
  ASSERT_TRUE(work.begin(request(work, "K4V4")).ok());
  std::vector<std::vector<int64_t>> slices;
  while (const auto grant = work.take("w1", live_)) slices.push_back(grant->unit.examples);
  // 10 examples at most 4 at a time: 3 + 3 + 4.
  EXPECT_EQ(slices, (std::vector<std::vector<int64_t>>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8, 9}}));
}

TEST_F(WorkloadTest, CompletesWithTheLastSliceAndFindsItAgain) {
  Workload work = workload(5);
  describe(work);
  const int id = *work.begin(request(work, "K4V4"));
  const auto first = work.take("w1", live_);
  const auto second = work.take("w2", live_);
  EXPECT_EQ(accept(work, run(second->unit)), Judgement::recorded);
  EXPECT_TRUE(work.take_ended().empty());
  EXPECT_EQ(accept(work, run(first->unit)), Judgement::recorded);
  EXPECT_EQ(work.take_ended(), std::vector<int>{id});
  EXPECT_EQ(work.evaluation(id).fate(), Evaluation::Fate::complete);
  EXPECT_EQ(work.evaluation(id).measurements().size(), 10u);
  EXPECT_EQ(work.evaluation(id).measurements()[7].exact_match, 1.0);

  const int again = *work.begin(request(work, "K4V4"));
  EXPECT_EQ(work.take_ended(), std::vector<int>{again});
  EXPECT_EQ(work.evaluation(again).reused(), 10);
  EXPECT_FALSE(work.take("w1", live_));
  // Fewer examples are there too; another map is not.
  const int fewer = *work.begin(request(work, "K4V4", 3));
  EXPECT_EQ(work.evaluation(fewer).fate(), Evaluation::Fate::complete);
  const int other = *work.begin(request(work, "K8V8"));
  EXPECT_EQ(work.evaluation(other).fate(), Evaluation::Fate::running);
}

TEST_F(WorkloadTest, ALateResultCompletesAndItsUnitIsNotLentAgain) {
  Workload work = workload(5);
  describe(work);
  const int id = *work.begin(request(work, "K4V4"));
  const auto grant = work.take("w1", live_);
  const wire::UnitResult late = run(grant->unit);
  ASSERT_TRUE(
      work.failed(grant->unit_id, {ErrorCode::worker_lost, "silent"}, {"w1", true, live_}).ok());
  EXPECT_EQ(work.waiting(), 2u);
  EXPECT_EQ(accept(work, late), Judgement::recorded);
  EXPECT_EQ(work.waiting(), 1u);
  EXPECT_EQ(accept(work, late), Judgement::recorded);  // again: nothing new
  const auto other = work.take("w2", live_);
  EXPECT_EQ(other->unit.examples, (std::vector<int64_t>{5, 6, 7, 8, 9}));
  accept(work, run(other->unit));
  EXPECT_EQ(work.take_ended(), std::vector<int>{id});
}

// Another process (same database) sends what an earlier one had asked for, before it was told of
// the task: it is held, then recorded although nobody here lent that unit.
TEST_F(WorkloadTest, ResultOfAnEarlierProcessIsHeldUntilItCanBeChecked) {
  wire::UnitResult orphan;
  {
    Workload earlier = workload(3);
    describe(earlier);
    ASSERT_TRUE(earlier.begin(request(earlier, "K4V4")).ok());
    orphan = run(earlier.take("w1", live_)->unit);
  }
  Workload work = workload(5);
  work.describe(kProtocol);
  EXPECT_EQ(accept(work, orphan), Judgement::held);
  describe(work);
  EXPECT_EQ(accept(work, orphan), Judgement::recorded);
  const int id = *work.begin(request(work, "K4V4"));
  EXPECT_EQ(work.evaluation(id).reused(), 2);  // 10 examples by 3 are slices of 2, 3, 2 and 3
}

TEST_F(WorkloadTest, TheSameWorkHasTheSameUnitIdInEveryProcess) {
  std::vector<std::string> ids;
  for (int process = 0; process < 2; ++process) {
    Workload work = workload(5);
    describe(work);
    ASSERT_TRUE(work.begin(request(work, "K4V4")).ok());
    ids.push_back(work.take("w1", live_)->unit_id);
  }
  EXPECT_EQ(ids[0], ids[1]);
}

TEST_F(WorkloadTest, LastAttemptFailsTheEvaluationAndDropsItsUnits) {
  Workload work = workload(5);
  describe(work);
  const int id = *work.begin(request(work, "K4V4"));
  const auto grant = work.take("w1", live_);
  ASSERT_TRUE(
      work.failed(grant->unit_id, {ErrorCode::numerics, "NaN in layer 3"}, {"w1", true, live_})
          .ok());
  EXPECT_EQ(work.take_ended(), std::vector<int>{id});
  EXPECT_EQ(work.evaluation(id).fate(), Evaluation::Fate::failed);
  EXPECT_EQ(work.evaluation(id).failure().message, "NaN in layer 3");
  EXPECT_FALSE(work.take("w1", live_));
}

TEST_F(WorkloadTest, TwoEvaluationsOfOneScopeShareUnitsAndFate) {
  Workload work = workload(10);
  describe(work);
  const int first = *work.begin(request(work, "K4V4"));
  const int second = *work.begin(request(work, "K4V4"));
  EXPECT_EQ(work.waiting(), 1u);
  const auto grant = work.take("w1", live_);
  accept(work, run(grant->unit));
  EXPECT_EQ(work.take_ended(), (std::vector<int>{first, second}));

  const int third = *work.begin(request(work, "K8V8"));
  const int fourth = *work.begin(request(work, "K8V8"));
  const auto bad = work.take("w1", live_);
  ASSERT_TRUE(work.failed(bad->unit_id, {ErrorCode::numerics, "NaN"}, {"w1", true, live_}).ok());
  EXPECT_EQ(work.take_ended(), (std::vector<int>{third, fourth}));
}

// Two tasks that differ only in how many examples they take share what is being measured.
TEST_F(WorkloadTest, OverlappingEvaluationsRunNoExampleTwice) {
  Workload work = workload(4);
  describe(work);
  const int few = *work.begin(request(work, "K4V4", 6));
  const int many = *work.begin(request(work, "K4V4", 10));
  std::vector<int64_t> lent;
  std::vector<Grant> grants;
  while (const auto grant = work.take("w1", live_)) {
    lent.insert(lent.end(), grant->unit.examples.begin(), grant->unit.examples.end());
    grants.push_back(*grant);
  }
  EXPECT_EQ(lent, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const Grant& grant : grants) accept(work, run(grant.unit));
  EXPECT_EQ(work.take_ended(), (std::vector<int>{few, many}));
}

// What one gives up, another that counted on it takes over.
TEST_F(WorkloadTest, AForgottenEvaluationLeavesItsUnitsToTheOther) {
  Workload work = workload(5);
  describe(work);
  const int first = *work.begin(request(work, "K4V4"));
  const int second = *work.begin(request(work, "K4V4"));
  work.forget(first);
  while (const auto grant = work.take("w1", live_)) accept(work, run(grant->unit));
  EXPECT_EQ(work.take_ended(), std::vector<int>{second});
}

TEST_F(WorkloadTest, WhatIsNotOursIsRefusedAndChargedToItsUnit) {
  Workload work = workload(10);
  describe(work);
  const int id = *work.begin(request(work, "K4V4"));
  const auto grant = work.take("w1", live_);
  const wire::UnitResult good = run(grant->unit);

  wire::UnitResult bad = good;
  bad.unit_id = "m-of-nobody";
  bad.numerics_class = "another";
  EXPECT_EQ(accept(work, bad), Judgement::refused);
  bad = good;
  bad.unit_id = "m-of-nobody";
  bad.model_hash = std::string(64, 'b');
  EXPECT_EQ(accept(work, bad), Judgement::refused);
  bad = good;
  bad.unit_id = "m-of-nobody";
  bad.maps[0].map_id = std::string(64, 'c');
  EXPECT_EQ(accept(work, bad), Judgement::refused);
  bad = good;
  bad.unit_id = "m-of-nobody";
  bad.protocol_hash = std::string(64, 'd');
  EXPECT_EQ(accept(work, bad), Judgement::refused);
  EXPECT_EQ(work.evaluation(id).missing().size(), 10u);

  // Late nonsense charges nobody: the unit stays with whoever has it.
  bad = good;
  bad.maps[0].measurements[0].example_hash = std::string(64, 'e');
  EXPECT_EQ(accept(work, bad, false), Judgement::refused);
  EXPECT_EQ(work.waiting(), 0u);

  bad = good;
  bad.maps[0].measurements.pop_back();  // one example short: kept, and the unit done again
  EXPECT_EQ(accept(work, bad), Judgement::recorded);
  EXPECT_EQ(work.evaluation(id).missing(), std::vector<int64_t>{9});
  const auto again = work.take("w2", live_);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->attempt, 2);
  EXPECT_EQ(again->unit.examples, std::vector<int64_t>{9});
}

}  // namespace
}  // namespace kvsweep::coordinator
