// `tune`, `coordinator` and `evaluate` with the real service and a formula for a model
// (tests/support/fake_runner.hpp): what they print, record and return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/json.hpp"
#include "core/text.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/process.hpp"
#include "tests/support/study_lab.hpp"

namespace kvsweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CliRun : public ::testing::Test {
 protected:
  test::CliCommand tune(std::vector<std::string> more = {}, const std::string& fake = "") const {
    test::CliCommand command;
    command.words = {"tune",
                     lab_.path("spec.yaml"),
                     "--db",
                     lab_.database(),
                     "--worker-program",
                     test::program("fake_worker"),
                     "--workers",
                     "2",
                     "--threads",
                     "1"};
    command.words.insert(command.words.end(), more.begin(), more.end());
    command.environment = lab_.fake(fake);
    return command;
  }

  static std::string slurp(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  test::StudyLab lab_;
};

TEST_F(CliRun, TuneRunsAStudyToItsEnd) {
  const auto run = test::run_cli(tune());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("lab: finished"), HasSubstr("20 of 20 trials"),
                             HasSubstr("hypervolume"), HasSubstr("baseline")));
  // A pipe gets plain lines: no carriage returns, no colours.
  EXPECT_THAT(run.err, AllOf(HasSubstr("lab: "), HasSubstr("local workers: 2, threads of each: 1"),
                             Not(HasSubstr("\r")), Not(HasSubstr("\033"))));
  EXPECT_EQ(lab_.trials().size(), 20u);
  test::expect_finished(lab_, 20);

  // The same command again has nothing left to do, and says the same.
  const auto again = test::run_cli(tune());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(lab_.trials().size(), 20u);
  EXPECT_EQ(again.out, run.out);
}

TEST_F(CliRun, TuneAsJson) {
  const auto run = test::run_cli(tune({"--json"}));
  EXPECT_EQ(run.code, 0) << run.err;
  const auto document = parse_json(run.out, "stdout");
  ASSERT_TRUE(document.ok()) << run.out;
  EXPECT_EQ(document->at("interrupted"), false);
  const Json& study = document->at("studies").at(0);
  EXPECT_EQ(study["study"]["status"], "finished");
  EXPECT_EQ(study["complete_trials"], 20);
  EXPECT_GE(study["front"].size(), 2u);
  // Progress: one JSON object per line.
  for (const std::string& line : split(run.err, '\n')) {
    EXPECT_TRUE(line.empty() || parse_json(line, "stderr").ok()) << line;
  }
  EXPECT_THAT(run.err, HasSubstr("\"trials_budget\":20"));
}

TEST_F(CliRun, CheckEstimatesTheTimeFromAnEarlierRun) {
  ASSERT_EQ(test::run_cli(tune({}, "ms=2")).code, 0);
  const auto check =
      test::run_cli({"check", lab_.path("spec.yaml"), "--db", lab_.database(), "--json"});
  EXPECT_EQ(check.code, 0) << check.err;
  const Json study = parse_json(check.out, "check")->at("studies").at(0);
  EXPECT_EQ(study["space"]["size"], 10000.0);  // ten pairs, four groups
  EXPECT_TRUE(study["seconds"].is_number());
  // 4 layers * 2 sides * 2 heads * 64 * 2 bytes * 4096 tokens.
  EXPECT_EQ(study["space"]["baseline_bytes"], 8388608.0);
  EXPECT_EQ(study["space"]["least_bits"], 2.5);
}

TEST_F(CliRun, InterruptedOnceDrainsAndTheNextRunGoesOn) {
  test::CliCommand command = tune({}, "ms=20");
  test::Command process{.words = {test::kvsweep_program()},
                        .environment = command.environment,
                        .output = lab_.path("tune.log")};
  process.words.insert(process.words.end(), command.words.begin(), command.words.end());
  test::Process running(process);
  ASSERT_TRUE(test::eventually(60000, [&] { return lab_.told() >= 2; }));
  running.signal(SIGINT);
  EXPECT_EQ(running.wait(60000), 130);
  EXPECT_THAT(slurp(lab_.path("tune.log")),
              AllOf(HasSubstr("finishing what is running; Ctrl-C again stops at once"),
                    HasSubstr("kvsweep: interrupted")));
  const int64_t before = lab_.told();
  EXPECT_LT(before, 20);
  EXPECT_EQ(lab_.study().status, store::StudyStatus::stopped);

  EXPECT_EQ(test::run_cli(tune()).code, 0);
  test::expect_finished(lab_, 20);
  test::expect_every_example_run_once(lab_);
}

TEST_F(CliRun, InterruptedTwiceStopsAtOnce) {
  // One unit never ends: a drain alone would wait.
  test::CliCommand command = tune({}, "hang_once=" + lab_.path("hung"));
  test::Command process{.words = {test::kvsweep_program()},
                        .environment = command.environment,
                        .output = lab_.path("tune.log")};
  process.words.insert(process.words.end(), command.words.begin(), command.words.end());
  test::Process running(process);
  ASSERT_TRUE(test::eventually(60000, [&] { return std::filesystem::exists(lab_.path("hung")); }));
  running.signal(SIGTERM);
  EXPECT_FALSE(running.wait(500).has_value());
  running.signal(SIGTERM);
  EXPECT_EQ(running.wait(30000), 130);
}

TEST_F(CliRun, CoordinatorWaitsForWorkersAndSaysWhere) {
  test::Command process{.words = {test::kvsweep_program(), "coordinator", lab_.path("spec.yaml"),
                                  "--db", lab_.database(), "--bind", lab_.endpoint()},
                        .environment = {},
                        .output = lab_.path("coordinator.log")};
  test::Process coordinator(process);
  ASSERT_TRUE(test::eventually(30000, [&] {
    return slurp(lab_.path("coordinator.log")).find("kvsweep worker --connect") !=
           std::string::npos;
  }));
  // A second coordinator on the same port, over another database.
  const auto second = test::run_cli({"coordinator", lab_.path("spec.yaml"), "--db",
                                     lab_.path("other.db"), "--bind", lab_.endpoint()});
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, AllOf(HasSubstr("kvsweep: "), HasSubstr(lab_.endpoint())));
  // A second writer of the same database.
  const auto writer = test::run_cli(tune());
  EXPECT_EQ(writer.code, 1);
  EXPECT_THAT(writer.err, HasSubstr("trials.db"));
  // Readers are not kept out.
  EXPECT_EQ(test::run_cli({"status", "--db", lab_.database()}).code, 0);

  test::Process worker = lab_.worker("w1");
  EXPECT_EQ(coordinator.wait(60000), 0);
  test::expect_finished(lab_, 20);
}

TEST_F(CliRun, OpenAddressNeedsInsecure) {
  const auto run = test::run_cli({"coordinator", lab_.path("spec.yaml"), "--db", lab_.database(),
                                  "--bind", "tcp://0.0.0.0:5599"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(StartsWith("kvsweep: "), HasSubstr("--insecure")));
}

TEST_F(CliRun, EvaluateComparesWithTheBaselineAndReusesMeasurements) {
  test::CliCommand command;
  command.words = {"evaluate",
                   "--model",
                   lab_.model(),
                   "--map",
                   "uniform:K4V4",
                   "--task",
                   "word_problems",
                   "--metric",
                   "token_agreement",
                   "--examples",
                   "12",
                   "--db",
                   lab_.database(),
                   "--worker-program",
                   test::program("fake_worker"),
                   "--workers",
                   "1",
                   "--json"};
  command.environment = lab_.fake("");
  const auto run = test::run_cli(command);
  ASSERT_EQ(run.code, 0) << run.err;
  const Json document = *parse_json(run.out, "evaluate");
  const PrecisionMap map =
      uniform_map(make_scheme({}).value(), test::kLabLayers, {Codec::int4, Codec::int4});
  EXPECT_EQ(document["map_id"], map_id(map));
  EXPECT_EQ(document["effective_bits"], 4.5);
  EXPECT_NEAR(document["results"][0]["value"].get<double>(), test::expected_agreement(map, 12),
              1e-9);
  EXPECT_EQ(document["results"][0]["examples"], 12);

  const size_t runs = lab_.runs().size();
  const auto again = test::run_cli(command);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(lab_.runs().size(), runs);  // nothing was run again
  EXPECT_EQ(parse_json(again.out, "evaluate")->at("results").at(0)["value"],
            document["results"][0]["value"]);

  command.words.pop_back();
  const auto plain = test::run_cli(command);
  EXPECT_THAT(plain.out, AllOf(HasSubstr("map       K4V4\nscheme    per-token, group head"),
                               HasSubstr("token_agreement"), HasSubstr("4.50 effective bits")));
}

}  // namespace
}  // namespace kvsweep
