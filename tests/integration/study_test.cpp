// A study from the first Hello to its report.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/support/study_lab.hpp"

namespace kvsweep::test {
namespace {

TEST(Study, FinishesWithLocalWorkers) {
  StudyLab lab({.extra = "report_tasks:\n"
                         "  - {name: word_problems, split: report, examples: 5, "
                         "metric: token_agreement}\n"});
  Process coordinator = lab.coordinator(
      {"workers=2", "worker_program=" + program("fake_worker"), "log_dir=" + lab.path("logs")},
      lab.fake(""));
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 20);
  expect_every_example_run_once(lab);

  const store::StudyRow study = lab.study();
  EXPECT_EQ(study.numerics_class, "fake/1");
  EXPECT_EQ(study.status_reason, "budget of 20 maps spent");
  const auto all = lab.open().trials(study.id);
  ASSERT_TRUE(all.ok());
  const store::TrialRow& baseline = all->front();
  EXPECT_EQ(baseline.number, -1);
  EXPECT_EQ(baseline.metric, 1.0);  // the formula's damage is 0 for the baseline
  EXPECT_EQ(baseline.loss, 0.0);
  // 4 layers x 2 sides x 2 heads x 64 elements x 2 bytes x 4096 tokens
  EXPECT_EQ(baseline.bytes, 4.0 * 2 * 2 * 64 * 2 * 4096);

  const auto events = lab.open().events(study.id, 1000);
  ASSERT_TRUE(events.ok());
  const auto front = lab.open().front(study.id);
  ASSERT_TRUE(front.ok());
  int reports = 0;
  for (const store::EventRow& event : *events) {
    if (event.kind != "report") continue;
    ++reports;
    const Json report = Json::parse(event.detail);
    EXPECT_EQ(report["split"], "report");
    EXPECT_EQ(report["examples"], 5);
    EXPECT_EQ(report["maps"].size(), front->size());
    for (const Json& row : report["maps"]) {
      const auto map = lab.open().map_by_id(row["map_id"].get<std::string>());
      ASSERT_TRUE(map.ok());
      EXPECT_NEAR(row["value"].get<double>(), expected_agreement(*map, 5), 1e-12);
    }
  }
  EXPECT_EQ(reports, 1);
}

// Costs are counted without torch and must be those of the layout.
TEST(Study, RecordsExactBytesAndBits) {
  StudyLab lab({.trials = 6, .extra = "at: {context: 1024, batch: 2}\n"});
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  for (const store::TrialRow& trial : lab.trials()) {
    const auto map = lab.open().map_by_id(trial.map_id);
    ASSERT_TRUE(map.ok());
    // By hand: per token of one side of one layer, 2 heads x (64 * bits / 8 code bytes + one
    // {scale, min} pair of 4 bytes), or 2 x 64 x 2 bytes in the base type.
    double bytes = 0;
    for (const LayerPairs& layer : map->layers) {
      const Pair pair = layer.of(0);
      for (const Codec codec : {pair.k, pair.v}) {
        const int bits = info(codec).bits;
        bytes += bits == 0 ? 2 * 64 * 2 : 2 * (64 * bits / 8 + 4);
      }
    }
    EXPECT_EQ(trial.bytes, bytes * 1024 * 2) << summary(*map);
    EXPECT_NEAR(trial.effective_bits, bytes * 8 / (kLabLayers * 2 * 2 * 64), 1e-12);
  }
}

TEST(Study, SameSeedOnOneWorkerGivesTheSameProposals) {
  std::vector<std::vector<std::vector<int>>> proposals;
  for (const uint64_t seed : {5, 5, 6}) {
    StudyLab lab({.trials = 40, .seed = seed});
    Process coordinator = lab.coordinator();
    Process worker = lab.worker("w1");
    ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
    expect_finished(lab, 40);
    proposals.push_back(lab.genomes());
  }
  EXPECT_EQ(proposals[0], proposals[1]);
  EXPECT_NE(proposals[0], proposals[2]);
}

TEST(Study, SecondStudyOverTheSameMapsRunsNoInference) {
  StudyLab lab({.trials = 30});
  {
    Process coordinator = lab.coordinator();
    Process worker = lab.worker("w1");
    ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  }
  const size_t runs = lab.runs().size();
  EXPECT_GT(runs, 0u);
  lab.write_spec({.name = "again", .trials = 30});
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w2");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  EXPECT_EQ(lab.runs().size(), runs);
  EXPECT_EQ(lab.genomes("again"), lab.genomes("lab"));
  for (const store::TrialRow& trial : lab.trials("again")) EXPECT_TRUE(trial.reused);
  // Of the second worker: only the description of the task.
  const auto workers = lab.open().workers();
  ASSERT_TRUE(workers.ok());
  for (const store::WorkerRow& row : *workers) {
    if (row.worker_id == "w2") {
      EXPECT_EQ(row.units_done, 1);
    }
  }
}

// A finished study is finished: no worker is needed to say so.
TEST(Study, FinishedStudyIsNotRunAgain) {
  StudyLab lab({.trials = 6});
  {
    Process coordinator = lab.coordinator();
    Process worker = lab.worker("w1");
    ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  }
  Process coordinator = lab.coordinator();
  EXPECT_EQ(coordinator.wait(30000), 0) << lab.output("coordinator");
  expect_finished(lab, 6);
}

// 4 groups of 2 candidates: 16 maps, then a clean end long before the budget.
TEST(Study, ExhaustsASmallSpace) {
  StudyLab lab({.trials = 100});
  LabSpec spec{.trials = 100};
  lab.write_spec(spec);
  std::string yaml =
      "name: lab\nmodel: " + lab.model() +
      "\nsearch: {trials: 100, population: 6, seed: 3, groups: 4, candidates: [K4V4, "
      "K8V8]}\nobjective_task: {name: word_problems, split: search, examples: 4, "
      "metric: token_agreement}\n";
  std::ofstream(lab.path("spec.yaml")) << yaml;
  Process coordinator = lab.coordinator();
  std::vector<Process> workers;
  for (const char* id : {"w1", "w2", "w3"}) workers.push_back(lab.worker(id));
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 16);
  EXPECT_EQ(lab.study().status_reason, "space exhausted after 16 maps");
}

TEST(Study, HardLimitIsNeverProposedAndMaxLossIsInfeasible) {
  StudyLab lab({.trials = 40, .extra = "limits: {max_bits: 6.0, max_loss: 0.03}\n"});
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 40);
  int infeasible = 0;
  for (const store::TrialRow& trial : lab.trials()) {
    EXPECT_LE(trial.effective_bits, 6.0);
    const bool over = *trial.loss > 0.03;
    EXPECT_EQ(trial.state == store::TrialState::infeasible, over) << *trial.loss;
    infeasible += over ? 1 : 0;
  }
  EXPECT_GT(infeasible, 0);
}

// Known without a worker, and before anything is recorded.
TEST(Study, ImpossibleLimitNamesTheLightestMap) {
  StudyLab lab({.extra = "limits: {max_bits: 2.2}\n"});
  Process coordinator = lab.coordinator();
  EXPECT_EQ(coordinator.wait(60000), 1);
  // K2V2 per token with one group per head: 2 + 32 / 64 bits.
  EXPECT_NE(lab.output("coordinator").find("the lightest needs 2.500 effective bits"),
            std::string::npos)
      << lab.output("coordinator");
}

TEST(Study, ForcedMetricsNeedOnlyTheBaselinesOwnOutput) {
  StudyLab lab({.trials = 8, .metric = "kl"});
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  // Per map 12 forced examples; of the baseline 12 generated and 12 forced ones. The uniform
  // baseline map is also a genome of the space, and then already measured.
  std::set<std::string> maps;
  for (const store::TrialRow& trial : lab.trials()) maps.insert(trial.map_id);
  maps.insert(map_id(baseline_map(*make_scheme({}), kLabLayers)));
  EXPECT_EQ(lab.runs().size(), 12 * maps.size() + 12);
  expect_every_example_run_once(lab);
}

TEST(Study, BudgetIsExactWithEightWorkers) {
  StudyLab lab({.trials = 61});
  Process coordinator = lab.coordinator();
  std::vector<Process> workers;
  for (int i = 0; i < 8; ++i) workers.push_back(lab.worker("w" + std::to_string(i), "ms=1"));
  ASSERT_EQ(coordinator.wait(120000), 0) << lab.output("coordinator");
  expect_finished(lab, 61);
  expect_every_example_run_once(lab);
}

TEST(Study, DescribesAMissingDataSetAtOnce) {
  StudyLab lab({.examples = 50});  // the fake task has 12
  Process coordinator = lab.coordinator();
  Process worker = lab.worker("w1");
  EXPECT_EQ(coordinator.wait(60000), 1);
  EXPECT_NE(lab.study().status_reason.find("50 examples of word_problems are asked for"),
            std::string::npos)
      << lab.study().status_reason;
}

}  // namespace
}  // namespace kvsweep::test
