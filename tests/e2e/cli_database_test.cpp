// Verbs that read a database, over one whose numbers were chosen by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/sample_database.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/xml_check.hpp"

namespace kvsweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CliDatabase : public ::testing::Test {
 protected:
  void SetUp() override { test::make_sample_database(db_); }

  test::CliResult run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--db", db_});
    return test::run_cli(words);
  }

  Json json(std::vector<std::string> words) const {
    words.push_back("--json");
    const auto result = run(words);
    EXPECT_EQ(result.code, 0) << result.err;
    const auto document = parse_json(result.out, "output");
    EXPECT_TRUE(document.ok()) << result.out;
    return document.ok() ? *document : Json();
  }

  // Lines of the output that hold `part`.
  static std::vector<std::string> lines(const std::string& text, const std::string& part) {
    std::vector<std::string> found;
    for (const std::string& line : split(text, '\n')) {
      if (line.find(part) != std::string::npos) found.push_back(line);
    }
    return found;
  }

  test::TempDir dir_;
  std::string db_ = dir_.file("sample.db");
};

std::vector<int64_t> numbers(const Json& trials) {
  std::vector<int64_t> all;
  for (const Json& trial : trials) all.push_back(trial.at("number").get<int64_t>());
  return all;
}

TEST_F(CliDatabase, FrontIsWhatNothingBeats) {
  const Json document = json({"front"});
  EXPECT_EQ(numbers(document["front"]), (std::vector<int64_t>{4, 1, 2, 0}));
  EXPECT_EQ(numbers(document["uniform"]), (std::vector<int64_t>{4, 1, 3, 0}));
  EXPECT_EQ(document["baseline"]["effective_bits"], 16.0);
  EXPECT_EQ(document["front"][1]["effective_bits"], 4.5);
  EXPECT_EQ(document["front"][1]["bytes"], test::kSampleBaselineBytes * 4.5 / 16);
  EXPECT_EQ(document["complete_trials"], 5);
  // Staircase in shares of the box (bytes / baseline, loss): from 2.5/16 height .6, from 4.5/16
  // height .95, from 5.5/16 height .98, from 8.5/16 to 1 height .99:
  // (2 * .6 + 1 * .95 + 3 * .98 + 7.5 * .99) / 16 = (1.2 + .95 + 2.94 + 7.425) / 16 = .7821875.
  EXPECT_NEAR(document["hypervolume_share"].get<double>(), 0.7821875, 1e-12);
  EXPECT_EQ(document["held_out"][0]["trials"].size(), 2u);
}

TEST_F(CliDatabase, FrontAsATable) {
  const auto result = run({"front", "--study", "small"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("nightly/small: finished (budget spent), 5 of 6 trials"));
  EXPECT_THAT(result.out, HasSubstr("hypervolume 78.2 %"));
  EXPECT_THAT(result.out, HasSubstr("K8V4 x2, K4V4 x2  2.75 MiB       34.4 %  5.50"));
  EXPECT_THAT(result.out, HasSubstr("baseline  K16V16  8.00 MiB      100.0 %  16.00"));
  EXPECT_THAT(result.out, HasSubstr("word_problems, split report, 32 examples"));
  EXPECT_THAT(result.out, HasSubstr("0.0625  0.0200 to 0.2000  Tango   32"));
  // Trial 3 is uniform and not on the front: only among the references.
  EXPECT_EQ(lines(result.out, "K8V4 ").size(), 2u);
}

TEST_F(CliDatabase, FrontAsAPicture) {
  const std::string svg = dir_.file("front.svg");
  const auto result = run({"front", "--svg", svg});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string picture = *read_file(svg);
  EXPECT_EQ(test::xml_problem(picture), "");
  EXPECT_EQ(test::count_of(picture, "class=\"trial\""), 1);         // trial 3
  EXPECT_EQ(test::count_of(picture, "class=\"trial member\""), 4);  // 4, 1, 2, 0
  const auto nowhere = run({"front", "--svg", dir_.file("no/folder.svg")});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, StartsWith("kvsweep: cannot write "));
}

TEST_F(CliDatabase, TrialsSortedSelectedAndCut) {
  EXPECT_EQ(numbers(json({"trials"})["trials"]), (std::vector<int64_t>{-1, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers(json({"trials", "--sort", "loss", "--limit", "3"})["trials"]),
            (std::vector<int64_t>{-1, 0, 2}));
  EXPECT_EQ(numbers(json({"trials", "--state", "failed"})["trials"]), (std::vector<int64_t>{5}));
  const auto plain = run({"trials"});
  EXPECT_THAT(plain.out, HasSubstr("failed: oom: the cache budget is too small"));
  EXPECT_THAT(plain.out, HasSubstr("baseline"));
}

TEST_F(CliDatabase, ShowHasEverything) {
  const auto plain = run({"show", "2"});
  EXPECT_EQ(plain.code, 0);
  EXPECT_THAT(plain.out, AllOf(HasSubstr("Trial 2 of nightly/small"), HasSubstr("crossover"),
                               HasSubstr("parents      0, 1"), HasSubstr("5.500 effective bits"),
                               HasSubstr("int8-token-ghead"), HasSubstr("after 2.5 s"),
                               HasSubstr("2026-11-30 20:23:54 UTC")));
  const Json document = json({"show", "1"});
  EXPECT_EQ(document["map"], "K4V4");
  EXPECT_EQ(document["precision_map"]["layers"].size(), 4u);
  EXPECT_EQ(document["held_out"][0]["trials"][0]["loss"], 0.0625);
  EXPECT_EQ(document["held_out"][0]["trials"][0]["method"], "Tango");
  EXPECT_THAT(run({"show", "1"}).out,
              HasSubstr("loss 0.0625, 95 % interval 0.0200 to 0.2000 (Tango)"));
  EXPECT_EQ(json({"show", "baseline"})["number"], -1);
}

TEST_F(CliDatabase, ShowOfWhatIsNotThere) {
  const auto missing = run({"show", "77"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("has no trial 77; its trials are 0 to 5"));
  EXPECT_THAT(run({"show", "best"}).err, HasSubstr("neither a number nor `baseline`"));
  const auto study = run({"front", "--study", "smal"});
  EXPECT_EQ(study.code, 1);
  EXPECT_THAT(study.err, HasSubstr("small"));
}

TEST_F(CliDatabase, Status) {
  const auto plain = run({"status"});
  EXPECT_EQ(plain.code, 0);
  EXPECT_THAT(plain.out, AllOf(HasSubstr("nightly/small"), HasSubstr("5/6"), HasSubstr("78.2 %"),
                               HasSubstr("report")));
  const Json document = json({"status"});
  EXPECT_EQ(document["studies"][0]["front_size"], 4);
  EXPECT_EQ(document["events"][0]["kind"], "report");
  EXPECT_EQ(document["database"]["rows"]["trials"], 7);
}

TEST_F(CliDatabase, ExportRefusesToOverwriteAndRoundTripsThroughImport) {
  const std::string file = dir_.file("best.kvmap.json");
  const auto first = run({"export", "--trial", "2", "--format", "kvmap", "--out", file});
  EXPECT_EQ(first.code, 0) << first.err;
  const Json document = *read_json_file(file);
  EXPECT_EQ(document["schema"], "kvmap");
  EXPECT_EQ(document["evidence"].size(), 1u);
  EXPECT_EQ(document["evidence"][0]["value"], 0.98);
  EXPECT_EQ(document["evidence"][0]["baseline"], 1.0);
  EXPECT_EQ(document["search"]["trial"], 2);

  const std::string before = *read_file(file);
  const auto again = run({"export", "--trial", "1", "--out", file});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("exists; give another --out, or --force"));
  EXPECT_EQ(*read_file(file), before);
  EXPECT_EQ(run({"export", "--trial", "2", "--out", file, "--force"}).code, 0);

  const Json imported = json({"import", file});
  EXPECT_EQ(imported["map_id"], json({"show", "2"})["map_id"]);
  EXPECT_EQ(imported["map"], "K8V4 x2, K4V4 x2");
  // A held-out report of the trial is evidence too.
  const std::string other = dir_.file("other.kvmap.json");
  EXPECT_EQ(run({"export", "--trial", "1", "--out", other}).code, 0);
  EXPECT_EQ(read_json_file(other)->at("evidence").size(), 2u);
}

// The YAML says only bits; the rest lies in the sidecar, so the same map comes back.
TEST_F(CliDatabase, KvTunerFileAndItsSidecarComeBackAsTheSameMap) {
  const std::string file = dir_.file("map.yaml");
  const auto written = run({"export", "--trial", "2", "--format", "kvtuner", "--out", file});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr(file + ".sidecar.json"));
  EXPECT_EQ(json({"import", file})["map_id"], json({"show", "2"})["map_id"]);
  // Neither of the two files is replaced by accident.
  std::filesystem::remove(file);
  const auto again = run({"export", "--trial", "1", "--format", "kvtuner", "--out", file});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("map.yaml.sidecar.json exists"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

// Trial 0 again with a pair per head in layer 1: what can hold it does, what cannot says so.
TEST_F(CliDatabase, PairsPerHeadAreShownExportedAndRefused) {
  PrecisionMap map;
  {
    store::Store store = store::Store::open(db_, {store::OpenMode::read_write, false}).value();
    store::TrialRow row = store.trials(1).value().at(1);
    map = store.map_by_id(row.map_id).value();
    map.layers[1] = layer_pairs_from("K8V8|K4V2").value();
    row.map_id = map_id(map);
    row.number = 9;
    row.tell_order = 9;
    row.genome = {9, 9};
    ASSERT_TRUE(store.put_map(map).ok());
    const Status put = store.put_trial(row);
    ASSERT_TRUE(put.ok()) << put.error().message;
  }
  const auto shown = run({"show", "9"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("K8V8, K8V8|K4V2, K8V8 x2"), HasSubstr("1.0  K8V8"),
                               HasSubstr("1.1  K4V2"), Not(HasSubstr("2.0"))));
  const std::string file = dir_.file("heads.yaml");
  const auto refused = run({"export", "--trial", "9", "--format", "kvtuner", "--out", file});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("kvtuner cannot hold pairs per KV head"));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(
      run({"export", "--trial", "9", "--format", "kvtuner", "--out", file, "--allow-lossy"}).code,
      0);
  EXPECT_THAT(read_file(file).value(), HasSubstr("1: {nbits_key: 8, nbits_value: 8}"));
  const std::string kvmap = dir_.file("heads.json");
  EXPECT_EQ(run({"export", "--trial", "9", "--format", "kvmap", "--out", kvmap}).code, 0);
  const Json imported = json({"import", kvmap});
  EXPECT_EQ(imported["map_id"], map_id(map));
  EXPECT_EQ(imported["layers"].size(), 5u);
  EXPECT_EQ(imported["layers"][2]["layer"], 1);
  EXPECT_EQ(imported["layers"][2]["head"], 1);
  EXPECT_EQ(imported["layers"][2]["pair"], "K4V2");
  EXPECT_FALSE(imported["layers"][3].contains("head"));
}

TEST_F(CliDatabase, ExportToStandardOutputAndUnknownFormat) {
  const auto out = run({"export", "--trial", "0", "--out", "-"});
  EXPECT_EQ(out.code, 0);
  EXPECT_TRUE(parse_json(out.out, "stdout").ok());
  const auto wrong = run({"export", "--trial", "0", "--format", "kvmapp", "--out", "-"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("kvmap"));
  EXPECT_EQ(wrong.out, "");
}

TEST_F(CliDatabase, NoColourInAPipe) {
  for (const char* verb : {"front", "trials", "status"}) {
    EXPECT_THAT(run({verb}).out, Not(HasSubstr("\033")));
  }
}

}  // namespace
}  // namespace kvsweep
