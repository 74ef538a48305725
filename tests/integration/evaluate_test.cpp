// evaluate(): one map against the baseline, without a search.
#include <gtest/gtest.h>

#include <cstdlib>

#include "coordinator/coordinator.hpp"
#include "tests/support/study_lab.hpp"

namespace kvsweep::test {
namespace {

class Evaluate : public ::testing::Test {
 protected:
  Evaluate() {
    options_.heartbeat_ms = 100;
    options_.local.count = 2;
    options_.local.program = program("fake_worker");
    options_.local.log_dir = lab_.path("logs");
    setenv("KVSWEEP_FAKE", lab_.fake("").at("KVSWEEP_FAKE").c_str(), 1);
    request_.model_dir = lab_.model();
    request_.map = uniform_map(*make_scheme({}), kLabLayers, *pair_from("K4V4"));
    const TaskProtocol protocol{.name = "word_problems",
                                .version = "1.0",
                                .split = "search",
                                .shots = 2,
                                .max_new_tokens = 96};
    request_.tasks = {{protocol, 8, Metric::token_agreement}, {protocol, 6, Metric::exact_match}};
  }
  ~Evaluate() override { unsetenv("KVSWEEP_FAKE"); }

  Result<coordinator::EvaluateReport> run() {
    auto store = store::Store::open(
        lab_.database(), {.mode = store::OpenMode::read_write, .allow_network_fs = true});
    if (!store.ok()) return store.error();
    return coordinator::evaluate(request_, *store, options_, clock_, stop_, {});
  }

  StudyLab lab_;
  SystemClock clock_;
  std::atomic<int> stop_{0};
  coordinator::CoordinatorOptions options_;
  coordinator::EvaluateRequest request_;
};

TEST_F(Evaluate, MeasuresOnceAndThenReuses) {
  const auto first = run();
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_EQ(first->rows.size(), 2u);
  const auto& forced = first->rows[0];
  EXPECT_EQ(forced.mode, RunMode::forced);
  EXPECT_EQ(forced.examples, 8);
  const auto value =
      coordinator::metric_value(Metric::token_agreement, forced.map, forced.baseline);
  ASSERT_TRUE(value.ok());
  EXPECT_NEAR(value->value, expected_agreement(request_.map, 8), 1e-12);
  EXPECT_EQ(value->baseline, 1.0);
  EXPECT_EQ(first->rows[1].mode, RunMode::generate);
  EXPECT_EQ(first->rows[1].map.size(), 6u);
  EXPECT_EQ(first->numerics_class, "fake/1");
  expect_every_example_run_once(lab_);

  const size_t runs = lab_.runs().size();
  const auto second = run();
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(lab_.runs().size(), runs);
  EXPECT_EQ(second->rows[0].reused, 8);
  ASSERT_EQ(second->rows[0].map.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(to_json(second->rows[0].map[i]), to_json(forced.map[i]));
    EXPECT_EQ(to_json(second->rows[0].baseline[i]), to_json(forced.baseline[i]));
  }
}

TEST_F(Evaluate, MapOfAnotherModelIsRefusedWithoutAWorker) {
  request_.map = uniform_map(*make_scheme({}), kLabLayers + 1, *pair_from("K4V4"));
  const auto report = run();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::bad_input);
}

TEST_F(Evaluate, StopReturnsWhatThereIs) {
  stop_ = 1;
  const auto report = run();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->interrupted);
  EXPECT_TRUE(report->rows.empty());
}

}  // namespace
}  // namespace kvsweep::test
