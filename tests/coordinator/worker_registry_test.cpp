#include "coordinator/worker_registry.hpp"

#include <gtest/gtest.h>

namespace kvsweep::coordinator {
namespace {

wire::Hello hello(const std::string& id) {
  return {.worker_id = id, .host = "h", .pid = 1};
}

TEST(WorkerRegistry, ANewConnectionReplacesTheOld) {
  ManualClock clock;
  WorkerRegistry registry(clock);
  registry.join("p1", hello("w")).idle = true;
  registry.join("p2", hello("w"));
  EXPECT_EQ(registry.by_peer("p1"), nullptr);
  ASSERT_NE(registry.by_peer("p2"), nullptr);
  EXPECT_FALSE(registry.by_peer("p2")->idle);  // says so itself
  EXPECT_EQ(registry.ids(), WorkerIds{"w"});
  registry.join("p2", hello("v"));  // one connection, one worker
  EXPECT_EQ(registry.ids(), WorkerIds{"v"});
}

TEST(WorkerRegistry, SilentAreThoseNotHeard) {
  ManualClock clock;
  WorkerRegistry registry(clock);
  registry.join("p1", hello("a"));
  clock.advance(60);
  registry.join("p2", hello("b"));
  clock.advance(40);
  EXPECT_EQ(registry.silent(100), std::vector<std::string>{"a"});
  registry.touch(*registry.by_id("a"));
  EXPECT_TRUE(registry.silent(100).empty());
}

TEST(WorkerRegistry, RowsOutliveConnectionsAndProcesses) {
  ManualClock clock(5000);
  WorkerRegistry registry(clock);
  registry.preload({{.worker_id = "w", .first_seen_utc_ms = 77, .units_done = 12}});
  Worker& worker = registry.join("p1", hello("w"));
  EXPECT_EQ(worker.row.first_seen_utc_ms, 77);
  EXPECT_EQ(worker.row.last_seen_utc_ms, 5000);
  worker.row.units_done = 13;
  registry.leave("w");
  EXPECT_EQ(registry.join("p2", hello("w")).row.units_done, 13);
  EXPECT_EQ(registry.join("p3", hello("new")).row.first_seen_utc_ms, 5000);
}

}  // namespace
}  // namespace kvsweep::coordinator
