#include "coordinator/unit_board.hpp"

#include <gtest/gtest.h>

namespace kvsweep::coordinator {
namespace {

class UnitBoardTest : public ::testing::Test {
 protected:
  void add(const std::string& id) { ASSERT_TRUE(board_.add({.id = id})); }
  // Pieces of one company, of which `most` may be lent together.
  void add_joint(const std::string& id, int64_t most) {
    ASSERT_TRUE(board_.add({.id = id, .company = "c", .most = most}));
  }
  std::string take(const std::string& worker) {
    const LentUnit* unit = board_.take(worker, live_);
    return unit == nullptr ? "" : unit->id;
  }
  // Whether it waits again.
  bool failed(const std::string& id, ErrorCode failure, const std::string& worker,
              const WorkerIds& live) {
    return board_.failed(id, failure, worker, live).empty();
  }

  UnitBoard board_{{.max_attempts = 3, .max_lost_workers = 5}};
  WorkerIds live_ = {"w1", "w2"};
};

TEST_F(UnitBoardTest, FirstInFirstOutAndReleasedOnesFirst) {
  add("a");
  add("b");
  add("c");
  EXPECT_FALSE(board_.add({.id = "a"}));
  EXPECT_EQ(take("w1"), "a");
  EXPECT_EQ(take("w2"), "b");
  board_.requeue("a");
  board_.requeue("a");  // twice is once
  EXPECT_EQ(take("w2"), "a");
  EXPECT_EQ(take("w2"), "c");
  EXPECT_EQ(take("w2"), "");
  EXPECT_EQ(board_.find("a")->attempts, 2);
  board_.requeue("gone");
  EXPECT_EQ(board_.waiting(), 0u);
}

TEST_F(UnitBoardTest, EachClassHasItsOwnLimit) {
  struct Case {
    ErrorCode failure_class;
    int attempts;  // 0 = without end
  };
  for (const Case& c : {Case{ErrorCode::oom, 3}, Case{ErrorCode::timeout, 3},
                        Case{ErrorCode::internal, 3}, Case{ErrorCode::worker_lost, 5},
                        Case{ErrorCode::numerics, 1}, Case{ErrorCode::preempted, 0}}) {
    UnitBoard board({.max_attempts = 3, .max_lost_workers = 5});
    board.add({.id = "u"});
    int attempts = 0;
    bool again = true;
    while (again && attempts < 100) {
      ASSERT_NE(board.take("w1", {"w1"}), nullptr) << to_string(c.failure_class);
      ++attempts;
      again = board.failed("u", c.failure_class, "w1", {"w1"}).empty();
    }
    EXPECT_EQ(attempts, c.attempts == 0 ? 100 : c.attempts) << to_string(c.failure_class);
    EXPECT_EQ(board.find("u") == nullptr, c.attempts != 0);
  }
}

TEST_F(UnitBoardTest, ClassesAreCountedApart) {
  live_ = {"w1"};
  add("u");
  for (const ErrorCode failure : {ErrorCode::oom, ErrorCode::timeout, ErrorCode::oom,
                                  ErrorCode::worker_lost, ErrorCode::timeout}) {
    take("w1");
    ASSERT_TRUE(failed("u", failure, "w1", {"w1"}));
  }
  take("w1");
  EXPECT_FALSE(failed("u", ErrorCode::oom, "w1", {"w1"}));  // the third
}

TEST_F(UnitBoardTest, RetriesGoElsewhereWhileThereIsSomebody) {
  add("u");
  EXPECT_EQ(take("w1"), "u");
  EXPECT_TRUE(failed("u", ErrorCode::oom, "w1", live_));
  EXPECT_EQ(take("w1"), "");  // w2 is there
  EXPECT_EQ(take("w2"), "u");
  EXPECT_TRUE(failed("u", ErrorCode::oom, "w2", live_));
  EXPECT_EQ(take("w1"), "u");  // both have failed: anybody
}

TEST_F(UnitBoardTest, BadInputIsTriedOnOneOtherWorkerOnly) {
  add("u");
  take("w1");
  EXPECT_TRUE(failed("u", ErrorCode::bad_input, "w1", live_));
  EXPECT_EQ(take("w2"), "u");
  EXPECT_FALSE(failed("u", ErrorCode::bad_input, "w2", live_));
  add("v");
  take("w1");
  EXPECT_FALSE(failed("v", ErrorCode::bad_input, "w1", {"w1"}));  // nobody else is there
}

TEST_F(UnitBoardTest, AdoptionTakesAWaitingUnitOnly) {
  add("u");
  EXPECT_TRUE(board_.adopt("u", 7, "w1"));
  EXPECT_EQ(board_.find("u")->attempts, 7);
  EXPECT_FALSE(board_.adopt("u", 7, "w1"));  // taken
  EXPECT_FALSE(board_.adopt("other", 1, "w1"));
  // A hung worker names its unit for ever; it does not get it back.
  EXPECT_TRUE(failed("u", ErrorCode::timeout, "w1", live_));
  EXPECT_FALSE(board_.adopt("u", 7, "w1"));
}

TEST_F(UnitBoardTest, JoinsWhatIsOfOneCompany) {
  add_joint("a", 3);
  add("alone");
  for (const char* id : {"b", "c", "d"}) add_joint(id, 3);
  ASSERT_TRUE(board_.add({.id = "other", .company = "another", .most = 3}));
  EXPECT_EQ(take("w1"), "a+b+c");
  EXPECT_EQ(pieces_of("a+b+c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(take("w1"), "alone");
  EXPECT_EQ(take("w1"), "d");
  EXPECT_EQ(take("w1"), "other");
  EXPECT_EQ(take("w1"), "");
}

TEST_F(UnitBoardTest, TheSmallestLimitHolds) {
  add_joint("a", 4);
  add_joint("b", 2);
  add_joint("c", 1);
  add_joint("d", 4);
  EXPECT_EQ(take("w1"), "a+b");
  EXPECT_EQ(take("w1"), "c");
  EXPECT_EQ(take("w1"), "d");
}

// One of 16 fails whatever it is lent with: it alone is charged, after 16, 8, 4, 2 and itself.
TEST_F(UnitBoardTest, HalvesUntilItIsKnownWhoseFailureItWas) {
  for (int i = 0; i < 16; ++i) add_joint(std::string(1, static_cast<char>('a' + i)), 16);
  std::vector<size_t> failures;
  std::set<std::string> done;
  std::vector<Piece> spent;
  while (const LentUnit* taken = board_.take("w1", live_)) {
    const LentUnit unit = *taken;
    if (unit.id.find('k') == std::string::npos) {
      for (const std::string& id : unit.pieces) {
        EXPECT_TRUE(done.insert(id).second);
        board_.remove(id);
      }
      continue;
    }
    failures.push_back(unit.pieces.size());
    for (Piece& piece : board_.failed(unit.id, ErrorCode::numerics, "w1", live_)) {
      spent.push_back(std::move(piece));
    }
  }
  EXPECT_EQ(failures, (std::vector<size_t>{16, 8, 4, 2, 1}));
  EXPECT_EQ(done.size(), 15u);
  ASSERT_EQ(spent.size(), 1u);
  EXPECT_EQ(spent[0].id, "k");
  EXPECT_EQ(board_.size(), 0u);
}

// A machine that goes away says nothing about the maps, until it happens again.
TEST_F(UnitBoardTest, TheFirstLostWorkerDoesNotSplit) {
  for (const char* id : {"a", "b", "c", "d"}) add_joint(id, 4);
  EXPECT_EQ(take("w1"), "a+b+c+d");
  EXPECT_TRUE(failed("a+b+c+d", ErrorCode::worker_lost, "w1", live_));
  EXPECT_TRUE(board_.adopt("a+b+c+d", 1, "w1"));  // it was only cut off for a while
  EXPECT_EQ(board_.lent("a+b+c+d")->attempt, 1);
  EXPECT_TRUE(failed("a+b+c+d", ErrorCode::worker_lost, "w1", live_));
  EXPECT_FALSE(board_.adopt("a+b+c+d", 1, "w1"));
  EXPECT_EQ(take("w1"), "a+b");
  EXPECT_TRUE(failed("a+b", ErrorCode::preempted, "w1", live_));
  EXPECT_EQ(take("w1"), "a+b");
  EXPECT_EQ(take("w1"), "c+d");
}

TEST_F(UnitBoardTest, WhatLeavesAUnitDoesNotTakeTheOthersAlong) {
  for (const char* id : {"a", "b", "c"}) add_joint(id, 3);
  EXPECT_EQ(take("w1"), "a+b+c");
  board_.remove("b");
  EXPECT_EQ(board_.lent("a+b+c")->pieces, (std::vector<std::string>{"a", "c"}));
  // Its own fault: charged, and it waits by itself.
  EXPECT_TRUE(board_.failed_alone("a", ErrorCode::internal, "w1", live_).empty());
  EXPECT_EQ(board_.find("a")->failures.at(ErrorCode::internal), 1);
  EXPECT_EQ(board_.waiting(), 1u);
  board_.requeue("a+b+c");  // what is left of it
  EXPECT_EQ(board_.waiting(), 2u);
  EXPECT_EQ(board_.lent("a+b+c"), nullptr);
  EXPECT_EQ(take("w2"), "c+a");
  board_.remove("a");
  board_.remove("c");
  EXPECT_EQ(board_.lent("c+a"), nullptr);
  EXPECT_TRUE(board_.failed("c+a", ErrorCode::oom, "w2", live_).empty());
  EXPECT_EQ(board_.size(), 0u);
}

TEST_F(UnitBoardTest, AdoptionOfAJointUnitTakesWhatWaits) {
  for (const char* id : {"a", "b", "c"}) add_joint(id, 3);
  EXPECT_TRUE(board_.adopt("b+gone+c", 4, "w1"));
  EXPECT_EQ(board_.lent("b+gone+c")->pieces, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(take("w2"), "a");
  EXPECT_FALSE(board_.adopt("b+c", 1, "w2"));  // both are taken
}

TEST_F(UnitBoardTest, RemovesByCondition) {
  for (int i = 0; i < 6; ++i) {
    board_.add({.id = std::to_string(i), .evaluation = i % 2});
  }
  take("w1");
  board_.remove_if([](const Piece& piece) { return piece.evaluation == 0; });
  EXPECT_EQ(board_.size(), 3u);
  EXPECT_EQ(take("w1"), "1");
  board_.remove("3");
  EXPECT_EQ(take("w1"), "5");
}

}  // namespace
}  // namespace kvsweep::coordinator
