// Units of several maps: what becomes of each map when the unit fails, in part or as a whole, comes
// late, or is given up; and that, whatever happens, nothing is measured twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "coordinator/joint_maps.hpp"
#include "coordinator/lease_table.hpp"
#include "core/rng.hpp"
#include "core/wire/limits.hpp"
#include "tests/coordinator/workload_fixture.hpp"

namespace kvsweep::coordinator {
namespace {

class JointUnitsTest : public WorkloadTest {
 protected:
  std::vector<int> begin(Workload& work, int maps, int64_t most) {
    std::vector<int> ids;
    for (int n = 0; n < maps; ++n) ids.push_back(*work.begin(joint(work, n, most)));
    return ids;
  }
  void fail(Workload& work, const Grant& grant, ErrorCode code) {
    ASSERT_TRUE(work.failed(grant.unit_id, {code, "as ordered"}, {"w1", true, live_}).ok());
  }
};

TEST_F(JointUnitsTest, MapsAreCutAtTheSameExamples) {
  Workload work = workload(4);
  describe(work);
  const std::vector<int> ids = begin(work, 5, 4);
  std::vector<std::pair<size_t, std::vector<int64_t>>> shapes;
  std::vector<int> ended;
  while (const auto grant = work.take("w1", live_)) {
    shapes.emplace_back(grant->unit.maps.size(), grant->unit.examples);
    EXPECT_EQ(accept(work, run(grant->unit)), Judgement::recorded);
    for (const int id : work.take_ended()) ended.push_back(id);
  }
  const std::vector<int64_t> a = {0, 1, 2};
  const std::vector<int64_t> b = {3, 4, 5};
  const std::vector<int64_t> c = {6, 7, 8, 9};
  EXPECT_EQ(shapes, (std::vector<std::pair<size_t, std::vector<int64_t>>>{
                        {4, a}, {4, b}, {4, c}, {1, a}, {1, b}, {1, c}}));
  EXPECT_EQ(ended, ids);
}

// The name of the largest unit, which lists its pieces, is one that a worker accepts.
TEST_F(JointUnitsTest, ALargeUnitTravels) {
  Workload work = workload(10);
  describe(work);
  begin(work, 49, kMostMapsPerUnit);
  const auto grant = work.take("w1", live_);
  ASSERT_EQ(grant->unit.maps.size(), 49u);
  const size_t longest = grant->unit_id.size() * kMostMapsPerUnit / 49 + 16;  // with "#attempt"
  EXPECT_LE(longest, wire::kMaxUnitId);
  const auto message = wire::decode(
      wire::encode(wire::Lease{lease_id_of(grant->unit_id, 1), grant->attempt, grant->unit}));
  ASSERT_TRUE(message.ok()) << message.error().message;
  EXPECT_EQ(std::get<wire::Lease>(*message).unit.unit_id, grant->unit_id);
}

// Three workers share the same maps, rather than having others asked for.
TEST_F(JointUnitsTest, ThereIsASliceForEveryWorker) {
  live_ = {"w1", "w2", "w3"};
  Workload work = workload(0);
  describe(work);
  begin(work, 4, 4);
  std::vector<int64_t> lent;
  for (const char* worker : {"w1", "w2", "w3"}) {
    const auto grant = work.take(worker, live_);
    ASSERT_TRUE(grant);
    EXPECT_EQ(grant->unit.maps.size(), 4u);
    lent.insert(lent.end(), grant->unit.examples.begin(), grant->unit.examples.end());
  }
  EXPECT_EQ(lent, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// Ten seconds for a full unit, as soon as something was timed; and no new slices for little.
TEST_F(JointUnitsTest, SlicesFollowTheSpeedInSteps) {
  live_ = {"w1"};
  Workload work = workload(0);
  describe(work);
  const auto run_all = [&](int first, double ms) {
    std::vector<size_t> examples;
    for (int n = first; n < first + 4; ++n) EXPECT_TRUE(work.begin(joint(work, n, 4)).ok());
    while (const auto grant = work.take("w1", live_)) {
      examples.push_back(grant->unit.examples.size());
      wire::UnitResult result = run(grant->unit);
      result.wall_ms = ms * static_cast<double>(4 * grant->unit.examples.size());
      accept(work, result);
    }
    return examples;
  };
  using Sizes = std::vector<size_t>;
  EXPECT_EQ(run_all(0, 400), (Sizes{5, 5}));  // not known: 8 examples of 4 maps
  EXPECT_EQ(run_all(4, 800), (Sizes{5, 5}));  // 10 s / 4 / 400 ms is 6: near 8
  // The average was 520 and is 604 ms: 4, which is not below half of 8.
  EXPECT_EQ(run_all(8, 1500), (Sizes{5, 5}));
  // 873 and then 1061 ms: 2.
  EXPECT_EQ(run_all(12, 1500), (Sizes{2, 2, 2, 2, 2}));
}

// What another evaluation has measured already is not measured again for the sake of company.
TEST_F(JointUnitsTest, JoinsOnlyEqualExamples) {
  Workload work = workload(5);
  describe(work);
  ASSERT_TRUE(work.begin(joint(work, 1, 4, 3)).ok());  // three of ten are there before
  accept(work, run(work.take("w1", live_)->unit));
  work.take_ended();
  begin(work, 3, 4);
  std::set<std::pair<std::string, int64_t>> lent;
  std::vector<size_t> maps;
  while (const auto grant = work.take("w1", live_)) {
    maps.push_back(grant->unit.maps.size());
    for (const PrecisionMap& map : grant->unit.maps) {
      for (int64_t example : grant->unit.examples) {
        EXPECT_TRUE(lent.emplace(map_id(map), example).second);
      }
    }
    accept(work, run(grant->unit));
  }
  EXPECT_EQ(lent.size(), 27u);
  EXPECT_EQ(maps, (std::vector<size_t>{2, 3, 1}));
  EXPECT_EQ(work.take_ended().size(), 3u);
}

TEST_F(JointUnitsTest, AMapOfImpossibleFiguresFailsAlone) {
  Workload work = workload(10);
  describe(work);
  const std::vector<int> ids = begin(work, 3, 4);
  const auto grant = work.take("w1", live_);
  ASSERT_EQ(grant->unit.maps.size(), 3u);
  wire::UnitResult result = run(grant->unit);
  result.maps[1].measurements[4].exact_match = 7;  // a share is from 0 to 1
  EXPECT_EQ(accept(work, result), Judgement::refused);
  EXPECT_EQ(work.take_ended(), (std::vector<int>{ids[0], ids[2], ids[1]}));
  EXPECT_EQ(work.evaluation(ids[0]).fate(), Evaluation::Fate::complete);
  EXPECT_EQ(work.evaluation(ids[1]).failure().code, ErrorCode::numerics);
  EXPECT_EQ(work.evaluation(ids[2]).fate(), Evaluation::Fate::complete);
  EXPECT_FALSE(work.take("w1", live_));
}

TEST_F(JointUnitsTest, AMapThatIsLeftOutIsDoneAgain) {
  Workload work = workload(10);
  describe(work);
  const std::vector<int> ids = begin(work, 3, 4);
  const auto grant = work.take("w1", live_);
  wire::UnitResult result = run(grant->unit);
  result.maps.pop_back();
  result.maps[1].measurements.resize(6);
  EXPECT_EQ(accept(work, result), Judgement::recorded);
  EXPECT_EQ(work.take_ended(), std::vector<int>{ids[0]});
  std::map<std::string, std::vector<int64_t>> lent;
  while (const auto again = work.take("w2", live_)) {
    ASSERT_EQ(again->unit.maps.size(), 1u);
    EXPECT_EQ(again->attempt, 2);
    lent[map_id(again->unit.maps[0])] = again->unit.examples;
    accept(work, run(again->unit));
  }
  EXPECT_EQ(lent[map_id(grant->unit.maps[1])], (std::vector<int64_t>{6, 7, 8, 9}));
  EXPECT_EQ(lent[map_id(grant->unit.maps[2])].size(), 10u);
  EXPECT_EQ(work.take_ended(), (std::vector<int>{ids[1], ids[2]}));
}

TEST_F(JointUnitsTest, AForgottenMapIsDroppedFromARunningUnit) {
  Workload work = workload(10);
  describe(work);
  const std::vector<int> ids = begin(work, 3, 4);
  const auto grant = work.take("w1", live_);
  work.forget(ids[1]);
  fail(work, *grant, ErrorCode::oom);  // two of three are left, and may be lent two at a time
  const auto again = work.take("w1", live_);
  ASSERT_EQ(again->unit.maps.size(), 2u);
  work.forget(ids[0]);
  EXPECT_EQ(accept(work, run(again->unit)), Judgement::recorded);
  EXPECT_EQ(work.take_ended(), std::vector<int>{ids[2]});
  EXPECT_FALSE(work.take("w1", live_));
}

// Another process, over the same database, knows from the lease's name what a worker still runs.
TEST_F(JointUnitsTest, ARestartedCoordinatorAdoptsAJointUnit) {
  wire::Unit running;
  {
    Workload earlier = workload(5);
    describe(earlier);
    begin(earlier, 3, 4);
    running = earlier.take("w1", live_)->unit;
  }
  Workload work = workload(5);
  describe(work);
  const std::vector<int> ids = begin(work, 3, 4);
  EXPECT_TRUE(work.adopt(running.unit_id, 1, "w1"));
  EXPECT_FALSE(work.adopt(running.unit_id, 1, "w2"));
  const auto rest = work.take("w2", live_);
  EXPECT_EQ(rest->unit.examples, (std::vector<int64_t>{5, 6, 7, 8, 9}));
  accept(work, run(rest->unit));
  EXPECT_FALSE(work.take("w2", live_));
  accept(work, run(running));
  EXPECT_EQ(work.take_ended(), ids);
}

TEST_F(JointUnitsTest, EachMapHasARowAndAnEqualShareOfTheTime) {
  Workload work = workload(10);
  describe(work);
  begin(work, 4, 4);
  const auto grant = work.take("w1", live_);
  ASSERT_TRUE(accept(work, run(grant->unit)) == Judgement::recorded);  // 100 ms
  EXPECT_EQ(store_.info()->rows.at("units"), 1 + 4);                   // one described the task
}

// Random histories: leases of random workers end well, in part, not at all, late, or with a
// failure; evaluations are begun and forgotten in between; one map in eight fails whatever is
// tried. Whatever happens: nothing is lent that is measured or that another lease has, every failed
// evaluation is of a map that is at fault, and all others are complete in the end.
class RandomHistory : public JointUnitsTest, public ::testing::WithParamInterface<int> {
 protected:
  using Key = std::pair<std::string, int64_t>;  // map, example

  static std::set<Key> keys_of(const wire::Unit& unit) {
    std::set<Key> keys;
    for (const PrecisionMap& map : unit.maps) {
      for (const int64_t example : unit.examples) keys.emplace(map_id(map), example);
    }
    return keys;
  }
  bool at_fault(const wire::Unit& unit) const {
    return std::any_of(unit.maps.begin(), unit.maps.end(),
                       [&](const PrecisionMap& map) { return poison_.contains(map_id(map)); });
  }

  void begin_one(Workload& work) {
    EvaluationRequest request =
        joint(work, next_map_, most_, 1 + static_cast<int64_t>(10 * rng_.uniform()) % 10);
    if (next_map_++ % 8 == 3) poison_.insert(map_id(request.map));
    const auto id = work.begin(std::move(request));
    ASSERT_TRUE(id.ok());
    running_.insert(*id);
  }

  void take(Workload& work, const std::string& worker) {
    const auto grant = work.take(worker, live_);
    if (!grant) return;
    for (const Key& key : keys_of(grant->unit)) {
      EXPECT_FALSE(measured_.contains(key)) << "lent although it is measured";
      for (const auto& [other, held] : held_) {
        EXPECT_FALSE(keys_of(held.unit).contains(key)) << "lent to two workers";
      }
    }
    EXPECT_LE(grant->unit.maps.size(), static_cast<size_t>(most_));
    held_.emplace(worker, *grant);
  }

  void report(Workload& work, const std::string& worker, const wire::UnitResult& result,
              bool leased) {
    ASSERT_TRUE(work.accept(result, {worker, leased, live_}).ok());
    for (const wire::MapMeasurements& map : result.maps) {
      for (const Measurement& m : map.measurements) measured_.emplace(map.map_id, m.example);
    }
  }

  void end(Workload& work, const std::string& worker) {
    const Grant grant = held_.at(worker);
    held_.erase(worker);
    const double dice = rng_.uniform();
    const auto failed = [&](ErrorCode code) {
      ASSERT_TRUE(work.failed(grant.unit_id, {code, "as ordered"}, {worker, true, live_}).ok());
    };
    if (at_fault(grant.unit)) {
      failed(ErrorCode::numerics);
    } else if (dice < 0.1) {
      work.give_back(grant.unit_id);
    } else if (dice < 0.3) {
      failed(dice < 0.2 ? ErrorCode::worker_lost : ErrorCode::oom);
      if (dice > 0.13 && dice < 0.25) late_.push_back(run(grant.unit));
    } else if (dice < 0.4) {
      wire::UnitResult part = run(grant.unit);
      part.maps.resize(1 + part.maps.size() / 2);
      part.maps[0].measurements.resize(1 + part.maps[0].measurements.size() / 2);
      report(work, worker, part, true);
    } else {
      report(work, worker, run(grant.unit), true);
    }
  }

  // Whoever runs a unit of it goes on with the others.
  void forget_one(Workload& work) {
    const int id = *running_.begin();
    running_.erase(id);
    work.forget(id);
    ++given_up_;
  }

  void settle(Workload& work) {
    for (const int id : work.take_ended()) {
      if (!running_.erase(id)) continue;
      const Evaluation& evaluation = work.evaluation(id);
      const bool poisoned = poison_.contains(evaluation.scope().map_id);
      EXPECT_EQ(evaluation.fate() == Evaluation::Fate::failed, poisoned);
      EXPECT_TRUE(poisoned || evaluation.missing().empty());
      work.forget(id);
      ++settled_;
    }
  }

  Rng rng_{static_cast<uint64_t>(GetParam()), "joint units"};
  int64_t most_ = 1 + GetParam() % 9;
  int next_map_ = 0;
  int settled_ = 0;
  int given_up_ = 0;
  std::set<std::string> poison_;
  std::set<int> running_;
  std::set<Key> measured_;
  std::map<std::string, Grant> held_;  // by worker
  std::vector<wire::UnitResult> late_;
};

TEST_P(RandomHistory, NothingIsLostAndNothingIsDoneTwice) {
  live_ = {"w1", "w2", "w3"};
  // Random failures charge the innocent too: here without end, so that only the guilty fail.
  Workload work = workload(1 + GetParam() % 5, {.max_attempts = 1000, .max_lost_workers = 1000});
  describe(work);
  const auto whole = store_.transaction([&]() -> Status {
    for (int step = 0; step < 100000 && (next_map_ < 49 || !running_.empty()); ++step) {
      const double dice = rng_.uniform();
      const std::string worker = "w" + std::to_string(1 + static_cast<int>(3 * rng_.uniform()) % 3);
      if (dice < 0.2 && next_map_ < 49) {
        begin_one(work);
      } else if (dice < 0.21 && running_.size() > 3) {
        forget_one(work);
      } else if (dice < 0.26 && !late_.empty()) {
        report(work, "w1", late_.back(), false);
        late_.pop_back();
      } else if (held_.contains(worker)) {
        end(work, worker);
      } else {
        take(work, worker);
      }
      settle(work);
      if (HasFatalFailure()) break;
    }
    return {};
  });
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(settled_ + given_up_, 49);
  EXPECT_EQ(work.waiting(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomHistory, ::testing::Range(0, 20));

}  // namespace
}  // namespace kvsweep::coordinator
