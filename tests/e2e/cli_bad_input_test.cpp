// What bad input gets: one sentence that says what, where and what to do, and exit code 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/file.hpp"
#include "core/json.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/sample_database.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliBadInput : public ::testing::Test {
 protected:
  Json config_ = {{"architectures", {"LlamaForCausalLM"}},
                  {"num_hidden_layers", 4},
                  {"num_attention_heads", 4},
                  {"num_key_value_heads", 2},
                  {"hidden_size", 256},
                  {"max_position_embeddings", 8192}};

  void write_model(const Json& config) {
    dir_.write("model/config.json", config.dump());
    dir_.write("model/model.safetensors", "x");
    dir_.write("model/tokenizer.json", "{}");
  }

  // A spec of the toy model with `more` lines.
  std::string spec(const std::string& more = "") {
    return dir_.write("spec.yaml",
                      "name: toy\nmodel: model\nobjective_task: {name: word_problems, metric: "
                      "token_agreement, examples: 4}\n" +
                          more);
  }

  void expect_error(std::vector<std::string> words, const std::string& part) {
    words.insert(words.end(), {"--db", dir_.file("t.db")});
    const auto result = test::run_cli(words);
    EXPECT_EQ(result.code, 1) << words[0];
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(StartsWith("kvsweep: "), HasSubstr(part)));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  test::TempDir dir_;
};

TEST_F(CliBadInput, SpecsGiveLineColumnAndNearestKey) {
  write_model(config_);
  for (const char* verb : {"check", "tune", "coordinator"}) {
    expect_error({verb, spec("serch: {trials: 5}\n")},
                 "spec.yaml:4:1: unknown key \"serch\"; did you mean \"search\"?");
    expect_error({verb, spec("search: {trials: many}\n")}, "spec.yaml:4:18: \"search.trials\"");
    expect_error({verb, spec("search: {algorithm: nsga3}\n")}, "did you mean nsga2?");
    expect_error({verb, spec("limits: {max_bits: -1}\n")}, "spec.yaml:4:20: \"limits.max_bits\"");
    expect_error({verb, spec("limits: {max_bits: 1}\n")}, "fits limits.max_bits 1: the lightest");
    expect_error({verb, dir_.write("empty.yaml", "sweep: s\nstudies: []\n")}, "empty.yaml:2:10: ");
    expect_error({verb, dir_.file("none.yaml")}, "none.yaml: No such file");
    expect_error({verb, dir_.path().string()}, "it is a folder");
  }
}

TEST_F(CliBadInput, ModelsThatCannotBeUsed) {
  expect_error({"tune", spec()}, "config.json: No such file");
  dir_.write("model/config.json", "{\"architectures\": ");
  expect_error({"tune", spec()}, "not valid JSON at line 1, column");
  Json config = config_;
  config["architectures"] = {"MambaForCausalLM"};
  write_model(config);
  for (const char* verb : {"tune", "check"}) {
    expect_error({verb, spec()}, "MambaForCausalLM is not supported; supported are Llama");
  }
  config = config_;
  config["num_hidden_layers"] = 1000000000;
  write_model(config);
  expect_error({"check", spec()}, "\"num_hidden_layers\" is 1000000000");
}

TEST_F(CliBadInput, ModelWithoutWeightsOrTokenizer) {
  write_model(config_);
  std::filesystem::remove(dir_.path() / "model" / "tokenizer.json");
  for (const char* verb : {"tune", "coordinator"}) {
    expect_error({verb, spec()}, "tokenizer.json is missing");
  }
  std::filesystem::remove(dir_.path() / "model" / "model.safetensors");
  expect_error({"tune", spec()}, "no model.safetensors");
}

TEST_F(CliBadInput, LimitsThatNoMapOfThisModelMeets) {
  write_model(config_);
  // 2-bit codes with one pair of parameters per head of 64: 2.5 bits.
  expect_error(
      {"check", spec("limits: {max_bits: 2.1}\nsearch: {groups: 2}\n")},
      "study toy: no map of the search space fits limits.max_bits 2.1: the lightest needs 2.500");
  expect_error({"check", spec("search: {groups: 9}\n")},
               "search.groups is 9; the model has 4 layers");
}

TEST_F(CliBadInput, WorkerThatIsNotThere) {
  write_model(config_);
  expect_error({"tune", spec(), "--worker-program", dir_.file("no-worker")},
               "no-worker does not exist or is not executable");
  expect_error({"tune", spec(), "--worker-program", spec()}, "not executable");
}

TEST_F(CliBadInput, DatabasesThatAreNone) {
  write_model(config_);
  const std::string garbage = dir_.write("garbage.db", std::string(4096, 'g'));
  const std::string empty = dir_.file("none.db");
  const std::vector<std::string> readers = {"status", "trials", "front"};
  for (const std::string& verb : readers) {
    const auto not_one = test::run_cli({verb, "--db", garbage});
    EXPECT_EQ(not_one.code, 1);
    EXPECT_THAT(not_one.err, AllOf(StartsWith("kvsweep: "), HasSubstr("garbage.db")));
    const auto missing = test::run_cli({verb, "--db", empty});
    EXPECT_EQ(missing.code, 1);
    EXPECT_THAT(missing.err, AllOf(HasSubstr("none.db"), HasSubstr("--db names another")));
    EXPECT_FALSE(std::filesystem::exists(empty)) << "reading made a file";
  }
  const auto folder = test::run_cli({"status", "--db", dir_.path().string()});
  EXPECT_EQ(folder.code, 1);
  EXPECT_THAT(folder.err, StartsWith("kvsweep: "));
  EXPECT_EQ(*read_file(garbage), std::string(4096, 'g'));
}

// user_version is a big-endian number at byte 60 of an SQLite file (https://sqlite.org/fileformat:
// 1.3.13): a later release would have a larger one there.
TEST_F(CliBadInput, DatabaseOfALaterRelease) {
  const std::string path = dir_.file("later.db");
  test::make_sample_database(path);
  std::string bytes = *read_file(path);
  ASSERT_GT(bytes.size(), 100u);
  bytes[62] = 3;  // version 3 * 256 + ours
  dir_.write("later.db", bytes);
  const auto result = test::run_cli({"front", "--db", path});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(StartsWith("kvsweep: "), HasSubstr("later.db")));
  EXPECT_EQ(*read_file(path), bytes);
}

TEST_F(CliBadInput, EmptyDatabaseHasNoStudy) {
  const std::string file = dir_.write("layers.yaml", "0: {nbits_key: 8, nbits_value: 8}\n");
  ASSERT_EQ(
      test::run_cli({"import", file, "--scheme", "per-token", "--db", dir_.file("t.db")}).code, 0);
  for (const char* verb : {"trials", "front"}) {
    expect_error({verb}, "no study yet; `kvsweep tune SPEC` runs one");
  }
}

TEST_F(CliBadInput, FoldersThatCannotBeWritten) {
  const std::string file = dir_.write("layers.yaml", "0: {nbits_key: 8, nbits_value: 8}\n");
  const std::string sealed = (dir_.path() / "sealed").string();
  std::filesystem::create_directory(sealed);
  std::filesystem::permissions(
      sealed, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  // Permissions do not bind root; /proc refuses everyone.
  const std::string folder = ::geteuid() == 0 ? "/proc" : sealed;
  const auto result =
      test::run_cli({"import", file, "--scheme", "per-token", "--db", folder + "/x.db"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(StartsWith("kvsweep: "), HasSubstr(folder)));
}

TEST_F(CliBadInput, DoctorSaysWhatIsMissing) {
  const auto sick = test::run_cli({"doctor", "--worker-program", dir_.file("none"), "--db",
                                   dir_.file("no/folder/t.db"), "--json"});
  EXPECT_EQ(sick.code, 1);
  const auto findings = parse_json(sick.out, "doctor");
  ASSERT_TRUE(findings.ok());
  std::map<std::string, std::string> health;
  for (const Json& finding : *findings) {
    health[finding["check"]] = finding["health"];
    EXPECT_EQ(finding["health"] == "ok", finding["advice"] == "");
  }
  EXPECT_EQ(health["versions"], "ok");
  EXPECT_EQ(health["worker"], "fail");
  EXPECT_EQ(health["database folder"], "fail");
  EXPECT_EQ(health["data sets"], "warn");
  EXPECT_EQ(health["loopback"], "ok");
}

TEST_F(CliBadInput, DoctorAsksTheWorker) {
  const std::string worker = dir_.write(
      "worker", "#!/bin/sh\necho '{\"version\": \"9.9\", \"numerics_class\": \"cpu/test\"}'\n");
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  const auto well =
      test::run_cli({"doctor", "--worker-program", worker, "--db", dir_.file("t.db")});
  EXPECT_EQ(well.code, 0) << well.out;
  EXPECT_THAT(well.out, HasSubstr("numerics_class cpu/test"));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("t.db")));

  dir_.write("worker", "#!/bin/sh\necho 'libtorch_cpu.so: cannot open' >&2\nexit 127\n");
  const auto broken =
      test::run_cli({"doctor", "--worker-program", worker, "--db", dir_.file("t.db")});
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.out, HasSubstr("exit status 127: libtorch_cpu.so: cannot open"));
}

}  // namespace
}  // namespace kvsweep
