#include "coordinator/lease_table.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace kvsweep::coordinator {
namespace {

class LeaseTableTest : public ::testing::Test {
 protected:
  ManualClock clock_{1000};
  LeaseTable table_{clock_, {.lease_ms = 100, .stall_ms = 1000}};
};

TEST_F(LeaseTableTest, LivesUntilItsDeadlineAndNotLonger) {
  table_.grant("u1", "w1", 1);
  clock_.advance(99);
  EXPECT_TRUE(table_.expire().empty());
  clock_.advance(1);
  const auto expired = table_.expire();
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].lease.unit_id, "u1");
  EXPECT_EQ(expired[0].lease.worker_id, "w1");
  EXPECT_EQ(expired[0].reason, ErrorCode::worker_lost);
  EXPECT_TRUE(table_.live().empty());
  EXPECT_TRUE(table_.expire().empty());  // once
}

TEST_F(LeaseTableTest, ProgressOfItsWorkerRenewsIt) {
  const std::string id = table_.grant("u1", "w1", 1).lease_id;
  clock_.advance(80);
  EXPECT_TRUE(table_.renew(id, "w1", {1, 8, 100}));
  clock_.advance(99);  // 179 after the grant, 99 after the renewal
  EXPECT_TRUE(table_.expire().empty());
  EXPECT_EQ(table_.find(id)->done, 1);
  EXPECT_EQ(table_.find(id)->total, 8);
  EXPECT_EQ(table_.find(id)->tokens, 100);
  EXPECT_FALSE(table_.renew(id, "w2", {2, 8, 200}));  // not its lease
  clock_.advance(1);
  EXPECT_EQ(table_.expire().size(), 1u);
  EXPECT_FALSE(table_.renew(id, "w1", {2, 8, 200}));  // too late
}

TEST_F(LeaseTableTest, OneLivePerUnitAndPerWorker) {
  table_.grant("u1", "w1", 1);
  EXPECT_THROW(table_.grant("u1", "w2", 2), std::logic_error);
  EXPECT_THROW(table_.grant("u2", "w1", 1), std::logic_error);
  EXPECT_TRUE(table_.close("u1#1"));
  EXPECT_FALSE(table_.close("u1#1"));
  EXPECT_EQ(table_.grant("u1", "w1", 2).lease_id, "u1#2");
  EXPECT_EQ(table_.of_unit("u1")->attempt, 2);
  EXPECT_EQ(table_.of_worker("w1")->unit_id, "u1");
  EXPECT_EQ(table_.of_worker("w2"), nullptr);
}

// Heartbeats come from another thread than the computation.
TEST_F(LeaseTableTest, CountersThatStandStillAreATimeout) {
  const std::string id = table_.grant("u1", "w1", 1).lease_id;
  for (int beat = 1; beat <= 19; ++beat) {
    clock_.advance(50);
    table_.renew(id, "w1", {1, 8, 10});
    ASSERT_TRUE(table_.expire().empty()) << beat;
  }
  // The counters last changed at the first beat, 50 ms after the grant: 1000 ms later is beat 21.
  clock_.advance(50);
  table_.renew(id, "w1", {1, 8, 10});
  ASSERT_TRUE(table_.expire().empty());
  clock_.advance(50);
  table_.renew(id, "w1", {1, 8, 10});
  const auto expired = table_.expire();
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].reason, ErrorCode::timeout);
}

TEST_F(LeaseTableTest, LeaseIdsGoBothWays) {
  std::string unit;
  int attempt = 0;
  EXPECT_TRUE(parse_lease_id(lease_id_of("m-12ab", 17), &unit, &attempt));
  EXPECT_EQ(unit, "m-12ab");
  EXPECT_EQ(attempt, 17);
  for (const char* bad :
       {"", "#", "#1", "u", "u#", "u#x", "u#0", "u#-1", "u#1x", "u#99999999999"}) {
    EXPECT_FALSE(parse_lease_id(bad, &unit, &attempt)) << bad;
  }
}

}  // namespace
}  // namespace kvsweep::coordinator
