#include "worker/service/compute_thread.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>

namespace kvsweep::service {
namespace {

class LambdaRunner final : public UnitRunner {
 public:
  using Body =
      std::function<wire::UnitResult(const wire::Unit&, UnitCounters&, const std::atomic<bool>&)>;
  explicit LambdaRunner(Body body) : body_(std::move(body)) {}
  wire::UnitResult run(const wire::Unit& unit, UnitCounters& counters,
                       const std::atomic<bool>& cancel) override {
    return body_(unit, counters, cancel);
  }

 private:
  Body body_;
};

class ComputeThreadTest : public ::testing::Test {
 protected:
  ~ComputeThreadTest() override { close(wake_); }

  // Waits for the wake-up, as the I/O thread does.
  wire::UnitResult result(ComputeThread& thread) {
    pollfd item{wake_, POLLIN, 0};
    EXPECT_EQ(poll(&item, 1, 10000), 1);
    uint64_t count = 0;
    EXPECT_EQ(read(wake_, &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
    auto result = thread.take_result();
    EXPECT_TRUE(result.has_value());
    return result.value_or(wire::UnitResult{});
  }

  wire::UnitResult run(const LambdaRunner::Body& body) {
    LambdaRunner runner(body);
    ComputeThread thread(runner, wake_);
    thread.start({.lease_id = "u#2", .attempt = 2, .unit = {.unit_id = "u"}});
    return result(thread);
  }

  int wake_ = eventfd(0, EFD_NONBLOCK);
};

TEST_F(ComputeThreadTest, NamesLeaseAndUnitAndTakesTheTime) {
  const auto result = run([](const wire::Unit&, UnitCounters&, const std::atomic<bool>&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return wire::UnitResult{};
  });
  EXPECT_EQ(result.lease_id, "u#2");
  EXPECT_EQ(result.unit_id, "u");
  EXPECT_GE(result.wall_ms, 20);
  EXPECT_FALSE(result.failure);
}

TEST_F(ComputeThreadTest, ExceptionsBecomeFailureClasses) {
  const auto memory =
      run([](const wire::Unit&, UnitCounters&, const std::atomic<bool>&) -> wire::UnitResult {
        throw std::bad_alloc();
      });
  ASSERT_TRUE(memory.failure);
  EXPECT_EQ(memory.failure->code, ErrorCode::oom);
  const auto other =
      run([](const wire::Unit&, UnitCounters&, const std::atomic<bool>&) -> wire::UnitResult {
        throw std::runtime_error("broken \xff invariant");
      });
  ASSERT_TRUE(other.failure);
  EXPECT_EQ(other.failure->code, ErrorCode::internal);
  EXPECT_EQ(other.failure->message, "broken \xef\xbf\xbd invariant");  // travels as UTF-8
  EXPECT_EQ(other.unit_id, "u");
}

// CBOR of ours carries no NaN: the other side would drop the whole message.
TEST_F(ComputeThreadTest, FiguresThatAreNoneBecomeNumerics) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const auto result = run([&](const wire::Unit&, UnitCounters&, const std::atomic<bool>&) {
      wire::UnitResult made;
      made.maps.push_back({"map", {{.example = 4, .kl = 0.1}, {.example = 5, .kl = bad}}});
      return made;
    });
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->code, ErrorCode::numerics);
    EXPECT_NE(result.failure->message.find("example 5"), std::string::npos);
    EXPECT_TRUE(result.maps.empty());
    EXPECT_TRUE(wire::decode(wire::encode(result)).ok());
  }
}

TEST_F(ComputeThreadTest, CountersAreReadWhileItWorksAndCancelReachesIt) {
  std::atomic<bool> started{false};
  LambdaRunner runner(
      [&](const wire::Unit&, UnitCounters& counters, const std::atomic<bool>& cancel) {
        counters.total = 9;
        counters.done = 3;
        counters.tokens = 300;
        started = true;
        while (!cancel) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        wire::UnitResult result;
        result.failure = wire::UnitFailure{ErrorCode::preempted, "asked"};
        return result;
      });
  ComputeThread thread(runner, wake_);
  EXPECT_FALSE(thread.busy());
  thread.start({.lease_id = "u#1", .unit = {.unit_id = "u"}});
  while (!started) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(thread.busy());
  const wire::LeaseProgress progress = thread.progress();
  EXPECT_EQ(progress.lease_id, "u#1");
  EXPECT_EQ(progress.done, 3);
  EXPECT_EQ(progress.total, 9);
  EXPECT_EQ(progress.tokens, 300);
  thread.cancel();
  EXPECT_EQ(result(thread).failure->code, ErrorCode::preempted);
  EXPECT_FALSE(thread.busy());
}

TEST_F(ComputeThreadTest, LeavesWithAUnitRunning) {
  LambdaRunner runner([](const wire::Unit&, UnitCounters&, const std::atomic<bool>& cancel) {
    while (!cancel) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return wire::UnitResult{};
  });
  ComputeThread thread(runner, wake_);
  thread.start({.lease_id = "u#1", .unit = {.unit_id = "u"}});
}  // the destructor cancels and joins

}  // namespace
}  // namespace kvsweep::service
