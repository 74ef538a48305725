// The command line itself: help of every verb, mistakes, exit codes, JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/verb.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
#define KVSWEEP_VERB(id, name, summary) names.emplace_back(name);
#include "cli/verbs.def"
#undef KVSWEEP_VERB
  return names;
}

// One sentence on standard error, and nothing on standard output.
void expect_sentence(const test::CliResult& run, const std::string& part) {
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("kvsweep: "));
  EXPECT_THAT(run.err, HasSubstr(part));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

TEST(CliUsage, GeneralHelpNamesEveryVerbAndEveryExitCode) {
  const auto help = run_cli({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const std::string& name : verb_names()) EXPECT_THAT(help.out, HasSubstr("  " + name + " "));
  for (const char* code : {"  0 ", "  1 ", "  2 ", "  3 ", "  130 "}) {
    EXPECT_THAT(help.out, HasSubstr(code));
  }
  EXPECT_EQ(run_cli({"help"}).out, help.out);
  EXPECT_EQ(run_cli({"-h"}).out, help.out);
}

TEST(CliUsage, WithoutAVerbItIsAMistake) {
  const auto run = run_cli(std::vector<std::string>{});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("Usage"));
}

TEST(CliUsage, Version) {
  const auto run = run_cli({"--version"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, ::testing::MatchesRegex("kvsweep [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

// The contract of every verb in the table.
TEST(CliUsage, EveryVerbExplainsItselfAndRefusesUnknownOptions) {
  for (const std::string& name : verb_names()) {
    const auto help = run_cli({name, "--help"});
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_THAT(help.out, StartsWith("kvsweep " + name + ": "));
    EXPECT_THAT(help.out, HasSubstr("Usage"));
    EXPECT_THAT(help.out, HasSubstr("Examples\n  kvsweep " + name));
    EXPECT_EQ(run_cli({"help", name}).out, help.out);
    for (const std::string& line : split(help.out, '\n')) EXPECT_LE(line.size(), 100u) << line;

    const auto wrong = run_cli({name, "--nonsense-option"});
    EXPECT_EQ(wrong.code, 2) << name;
    expect_sentence(wrong, "unknown option --nonsense-option");
  }
}

TEST(CliUsage, UnknownVerbGivesTheNearest) {
  const auto near = run_cli({"trails"});
  EXPECT_EQ(near.code, 2);
  expect_sentence(near, "unknown verb \"trails\"; did you mean trials?");
  const auto far = run_cli({"zzzzzz"});
  EXPECT_EQ(far.code, 2);
  expect_sentence(far, "see `kvsweep --help`");
  EXPECT_EQ(run_cli({"help", "trails"}).code, 2);
}

TEST(CliUsage, MistakesInOptions) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"tune", "spec.yaml", "--worker", "2"}, "unknown option --worker; did you mean --workers?"},
      {{"tune", "spec.yaml", "--workers", "0"}, "--workers is \"0\"; it must be a whole number"},
      {{"tune", "spec.yaml", "--workers", "two"}, "--workers is \"two\""},
      {{"tune", "spec.yaml", "--workers"}, "--workers needs a value (N)"},
      {{"tune", "spec.yaml", "--db", "a", "--db", "b"}, "--db is given 2 times"},
      {{"tune", "spec.yaml", "--log-level", "loud"}, "allowed are debug, info, warn and error"},
      {{"tune"}, "SPEC is missing"},
      {{"tune", "a.yaml", "b.yaml"}, "unexpected argument \"b.yaml\""},
      {{"show"}, "TRIAL is missing"},
      {{"trials", "--sort", "size"}, "--sort is \"size\"; allowed are number, bytes, loss"},
      {{"trials", "--state=done"}, "--state is \"done\""},
      {{"evaluate", "--group", "48"}, "--group is \"48\"; allowed are 32, 64, 128 and head"},
      {{"evaluate", "--baseline-kv", "fp8"}, "baseline KV type \"fp8\" is not known"},
      {{"evaluate", "--examples", "-5"}, "--examples"},
      {{"--db", "x.db", "tune"}, "options follow the verb"},
  };
  for (const auto& [words, part] : cases) {
    const auto run = run_cli(words);
    EXPECT_EQ(run.code, 2) << join(words, " ");
    expect_sentence(run, part);
  }
}

TEST(CliUsage, RequiredOptionsThatAreMissing) {
  const test::TempDir dir;
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"evaluate"}, "--model is missing"},
      {{"evaluate", "--model", "m"}, "--map is missing"},
      {{"evaluate", "--model", "m", "--map", "baseline"}, "--task is missing"},
      {{"worker"}, "--connect is missing"},
      {{"export", "--out", "x"}, "--trial is missing"},
      {{"export", "--trial", "1"}, "--out is missing"},
      {{"check"}, "SPEC is missing"},
  };
  for (const auto& [words, part] : cases) {
    test::CliCommand command;
    command.words = words;
    command.folder = dir.path().string();
    const auto run = run_cli(command);
    EXPECT_EQ(run.code, 1) << join(words, " ");
    expect_sentence(run, part);
  }
}

// The verb becomes the worker program; `echo` in its place shows what it is told.
TEST(CliUsage, DataHandsOnWhatItIsGiven) {
  const auto run = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--worker-program", "/bin/echo"});
    return run_cli(words);
  };
  EXPECT_EQ(run({"data", "print", "gsm8k", "--shots", "4", "--data-dir", "/d"}).out,
            "--examples gsm8k --shots 4 --data-dir /d\n");
  EXPECT_EQ(run({"data", "generate", "recall", "--count", "5", "--length=64"}).out,
            "--corpus recall --count 5 --length 64\n");
  const auto wrong = run({"data", "prnt", "gsm8k"});
  EXPECT_EQ(wrong.code, 1);
  expect_sentence(
      wrong, "no action \"prnt\"; allowed are print, generate, check, score (did you mean print?)");
}

TEST(CliUsage, ListsAreTablesAndJson) {
  const std::pair<const char*, const char*> kinds[] = {
      {"codecs", "int4"}, {"schemes", "kivi"},     {"models", "LlamaForCausalLM"},
      {"tasks", "gsm8k"}, {"algorithms", "nsga2"}, {"exporters", "kvtuner"},
  };
  for (const auto& [kind, entry] : kinds) {
    const auto plain = run_cli({"list", kind});
    EXPECT_EQ(plain.code, 0);
    EXPECT_THAT(plain.out, HasSubstr(entry));
    EXPECT_THAT(plain.out, ::testing::Not(HasSubstr("\033")));  // a pipe gets no colours
    const auto json = run_cli({"list", kind, "--json"});
    EXPECT_EQ(json.code, 0);
    const auto document = parse_json(json.out, kind);
    ASSERT_TRUE(document.ok());
    EXPECT_TRUE(document->is_array() && !document->empty());
  }
  const auto schemes = parse_json(run_cli({"list", "schemes", "--json"}).out, "schemes");
  int references = 0;
  for (const Json& scheme : *schemes) references += scheme["reference"] == true ? 1 : 0;
  EXPECT_EQ(references, 5);
  const auto wrong = run_cli({"list", "codec"});
  EXPECT_EQ(wrong.code, 1);
  expect_sentence(wrong, "did you mean codecs?");
}

TEST(CliUsage, FullStandardOutputIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  test::CliCommand command;
  command.words = {"list", "codecs"};
  command.out_file = "/dev/full";
  const auto run = run_cli(command);
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("cannot write to standard output"));
}

TEST(CliUsage, KeysOfASpecAreDocumented) {
  const auto plain = run_cli({"check", "--keys"});
  EXPECT_EQ(plain.code, 0);
  EXPECT_THAT(plain.out, HasSubstr("search.trials"));
  EXPECT_THAT(plain.out, HasSubstr("(required)"));
  EXPECT_TRUE(parse_json(run_cli({"check", "--keys", "--json"}).out, "keys").ok());
}

}  // namespace
}  // namespace kvsweep
