// The front against brute force, and its time at 100,000 trials.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <set>

#include "tests/store/samples.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

using test::must;

bool dominates(const TrialRow& a, const TrialRow& b) {
  return a.bytes <= b.bytes && *a.loss <= *b.loss && (a.bytes < b.bytes || *a.loss < *b.loss);
}

bool equal(const TrialRow& a, const TrialRow& b) {
  return a.bytes == b.bytes && a.loss == b.loss;
}

// O(n^2) by the definition: complete, not the baseline, dominated by none, first of its equals.
std::set<int64_t> brute_force(const std::vector<TrialRow>& trials) {
  std::set<int64_t> front;
  for (const TrialRow& trial : trials) {
    bool kept = trial.number >= 0 && trial.state == TrialState::complete;
    for (const TrialRow& other : trials) {
      if (!kept || other.number < 0 || other.state != TrialState::complete) continue;
      kept = !dominates(other, trial) && !(equal(other, trial) && other.number < trial.number);
    }
    if (kept) front.insert(trial.number);
  }
  return front;
}

TEST(Front, EqualsBruteForce) {
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    test::TempDir dir;
    Store store = test::open_writer(dir.file("a.db"));
    const StudyRow study = test::make_study(store, "one");
    const StudyRow other = test::make_study(store, "two");
    must(store.transaction([&]() -> Status {
      for (int i = 0; i < 120; ++i) {
        // A coarse grid, so that ties and equal vectors occur.
        TrialRow trial = test::make_trial(store, study.id, i, 1 + random() % 12,
                                          static_cast<double>(random() % 10) / 10);
        if (random() % 6 == 0) trial.state = TrialState::infeasible;
        if (random() % 9 == 0) {
          trial.state = TrialState::failed;
          trial.loss.reset();
        }
        KVSWEEP_TRY(store.put_trial(trial));
      }
      TrialRow baseline = test::make_trial(store, study.id, 500, 0.5, 0);  // would dominate all
      baseline.number = -1;
      baseline.tell_order = -1;
      KVSWEEP_TRY(store.put_trial(baseline));
      return store.put_trial(test::make_trial(store, other.id, 0, 0.1, 0));
    }));
    std::set<int64_t> numbers;
    double last = 0;
    for (const TrialRow& trial : must(store.front(study.id))) {
      EXPECT_GT(trial.bytes, last) << "not sorted by bytes";
      last = trial.bytes;
      numbers.insert(trial.number);
    }
    EXPECT_EQ(numbers, brute_force(must(store.trials(study.id))));
  }
}

TEST(Front, EmptyStudyHasNone) {
  test::TempDir dir;
  Store store = test::open_writer(dir.file("a.db"));
  const StudyRow study = test::make_study(store);
  EXPECT_TRUE(must(store.front(study.id)).empty());
  EXPECT_TRUE(must(store.front(study.id + 1)).empty());
}

// Filled by SQL, since only reading is looked at: a band of losses along the curve 1 / bytes, in an
// order and with offsets that two primes scatter.
constexpr const char* kFill = R"sql(
BEGIN;
INSERT INTO schemes SELECT 1,'per-token','{"name":"per-token"}';
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
INSERT INTO maps SELECT i + 1, printf('%064x', i), 1, 1, '["int8/int4"]', 'K8V4' FROM n;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999),
p AS (SELECT i, 1 + (i * 7919 % 100003) / 100003.0 AS b, (i * 104729 % 99991) / 99991.0 AS u
      FROM n)
INSERT INTO trials
SELECT 1, i, '[1,2,3,4,0,1,2,3]', '[]', 'crossover', i + 1, 'complete', i, 0, b, b,
       1 - (1 / b + 0.05 * u), 1 / b + 0.05 * u, 10, 0, '', 0, 0 FROM p;
COMMIT)sql";

TEST(Front, HundredThousandTrials) {
  test::TempDir dir;
  const std::string path = dir.file("a.db");
  {
    Store store = test::open_writer(path);
    ASSERT_EQ(test::make_study(store).id, 1);
  }
  SQLite::Database(path, SQLite::OPEN_READWRITE).exec(kFill);
  const Store store = test::open_reader(path);
  const auto start = std::chrono::steady_clock::now();
  const auto front = must(store.front(1));
  const auto middle = std::chrono::steady_clock::now();
  const auto all = must(store.trials(1));
  const auto end = std::chrono::steady_clock::now();
  std::printf("100000 trials: front of %zu in %.0f ms, all trials read in %.0f ms\n", front.size(),
              std::chrono::duration<double, std::milli>(middle - start).count(),
              std::chrono::duration<double, std::milli>(end - middle).count());
  ASSERT_EQ(all.size(), 100000u);
  // No member is dominated, and every other trial is: that determines the front.
  std::set<int64_t> numbers;
  for (const TrialRow& member : front) numbers.insert(member.number);
  ASSERT_GT(numbers.size(), 20u);
  for (const TrialRow& trial : all) {
    bool dominated = false;
    for (const TrialRow& member : front) dominated = dominated || dominates(member, trial);
    ASSERT_EQ(dominated, numbers.count(trial.number) == 0) << trial.number;
  }
}

}  // namespace
}  // namespace kvsweep::store
