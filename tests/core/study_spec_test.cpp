#include "core/study_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const SpecOptions kOptions{{"nsga2", "random", "exhaustive"}};

constexpr const char* kFlat = R"(name: one
model: /models/a
objective_task: {name: gsm8k, metric: answer_agreement, examples: 40}
)";

constexpr const char* kSweep = R"(
sweep: nightly
defaults:
  scheme: {name: kivi, group: 64}
  search: {algorithm: nsga2, trials: 200, population: 32, seed: 7}
  limits: {max_bits: 5.0, max_loss: 0.01}
  at: {context: 2048}
  objective_task: {name: gsm8k, shots: 4, split: train, examples: 400}
  report_tasks: [{name: gsm8k, shots: 4, split: test}]
studies:
  - {name: a, model: /models/a}
  - name: b
    model: /models/b
    scheme: per-token
    search: {trials: 20, candidates: [K8V4, KV2, baseline]}
    objective_task: {examples: 10}
    report_tasks: []
  - name: c
    model: /models/c
    scheme: {residual: 128}
    objective_task: word_problems
    limits: {max_loss: 0.5}
)";

SweepSpec parsed(const std::string& yaml) {
  const auto sweep = parse_spec(yaml, "s.yaml", kOptions);
  EXPECT_TRUE(sweep.ok()) << sweep.error().message;
  return sweep.ok() ? *sweep : SweepSpec{};
}

std::string message(const std::string& yaml) {
  const auto sweep = parse_spec(yaml, "s.yaml", kOptions);
  EXPECT_FALSE(sweep.ok()) << yaml;
  if (sweep.ok()) return "";
  EXPECT_EQ(sweep.error().code, ErrorCode::bad_input);
  EXPECT_EQ(sweep.error().message.find('\n'), std::string::npos);
  return sweep.error().message;
}

TEST(StudySpec, FlatFormWithDefaults) {
  const SweepSpec sweep = parsed(kFlat);
  ASSERT_EQ(sweep.studies.size(), 1u);
  EXPECT_EQ(sweep.name, "");
  const StudySpec& study = sweep.studies[0];
  EXPECT_EQ(study.name, "one");
  EXPECT_EQ(study.model, "/models/a");
  EXPECT_EQ(study.scheme.name, "per-token");
  EXPECT_EQ(study.baseline_kv, BaseType::fp16);
  EXPECT_EQ(study.search.trials, 100);
  EXPECT_FALSE(study.limits.max_bits.has_value());
  EXPECT_EQ(study.at.context, 4096);
  EXPECT_EQ(study.objective_task.metric, Metric::answer_agreement);
  EXPECT_EQ(study.objective_task.examples, 40);
  EXPECT_EQ(study.objective_task.protocol.shots, 5);
  EXPECT_TRUE(study.report_tasks.empty());
}

TEST(StudySpec, SweepMergesDeeply) {
  const SweepSpec sweep = parsed(kSweep);
  ASSERT_EQ(sweep.studies.size(), 3u);
  EXPECT_EQ(sweep.name, "nightly");
  const StudySpec& a = sweep.studies[0];
  EXPECT_EQ(a.scheme.name, "kivi");
  EXPECT_EQ(a.scheme.group, 64);
  EXPECT_EQ(a.search.trials, 200);
  EXPECT_EQ(a.objective_task.protocol.split, "train");
  ASSERT_EQ(a.report_tasks.size(), 1u);
  EXPECT_EQ(a.report_tasks[0].protocol.split, "test");

  const StudySpec& b = sweep.studies[1];
  EXPECT_EQ(b.scheme.name, "per-token");
  EXPECT_FALSE(b.scheme.group.has_value());  // a text is the scheme with its own defaults
  EXPECT_EQ(b.search.trials, 20);
  EXPECT_EQ(b.search.population, 32);  // kept from the defaults
  EXPECT_EQ(b.search.candidates.size(), 3u);
  EXPECT_EQ(b.search.candidates[2], Pair{});
  EXPECT_EQ(b.objective_task.examples, 10);
  EXPECT_EQ(b.objective_task.protocol.shots, 4);
  EXPECT_TRUE(b.report_tasks.empty());

  const StudySpec& c = sweep.studies[2];
  EXPECT_EQ(c.scheme.name, "kivi");
  EXPECT_EQ(c.scheme.group, 64);
  EXPECT_EQ(c.scheme.residual, 128);
  EXPECT_EQ(c.objective_task.protocol.name, "word_problems");
  EXPECT_EQ(c.objective_task.protocol.shots, 2);  // of word_problems, not of the defaults' gsm8k
  EXPECT_EQ(c.objective_task.examples, 0);
  EXPECT_EQ(c.limits.max_bits, 5.0);
  EXPECT_EQ(c.limits.max_loss, 0.5);
  EXPECT_EQ(c.at.context, 2048);
}

TEST(StudySpec, GroupHeadAndQuotedTexts) {
  const StudySpec study =
      parsed(std::string(kFlat) + "scheme: {name: \"per-token\", group: head}\n").studies[0];
  EXPECT_EQ(study.scheme.group, 0);
}

// What a spec may get wrong -> where it is and what is said. Lines and columns are those of the
// offending key or value, counted by hand from 1.
TEST(StudySpec, ErrorsGivePlaceAndNearestKey) {
  const std::pair<std::string, const char*> cases[] = {
      {"name: one\nmodle: /m\n", "s.yaml:2:1: unknown key \"modle\"; did you mean \"model\"?"},
      {std::string(kFlat) + "search: {trails: 5}\n",
       "s.yaml:4:10: unknown key \"trails\" in \"search\"; did you mean \"trials\"?"},
      {std::string(kFlat) + "search:\n  trials: many\n",
       "s.yaml:5:11: \"search.trials\" is \"many\"; it must be a whole number from 1 to 1000000"},
      {std::string(kFlat) + "search: {trials: 0}\n", "s.yaml:4:18: \"search.trials\" is \"0\""},
      {std::string(kFlat) + "search: {trials: 1.5}\n", "s.yaml:4:18: "},
      {std::string(kFlat) + "search: {trials: \"5\"}\n",
       "s.yaml:4:18: \"search.trials\" is the text \"5\""},
      {std::string(kFlat) + "search: {trials: }\n", "s.yaml:4:18: \"search.trials\" is empty"},
      {std::string(kFlat) + "search: {trials: 99999999999999999999}\n", "s.yaml:4:18: "},
      {std::string(kFlat) + "search: {algorithm: nsga3}\n",
       "s.yaml:4:21: \"search.algorithm\" is \"nsga3\"; allowed are nsga2, random, exhaustive (did "
       "you mean nsga2?)"},
      {std::string(kFlat) + "report_tasks: [{name: gsm8k, split: train, length: 512}]\n",
       "s.yaml:4:52: task gsm8k has prompts of its own length, so a length has no meaning"},
      {std::string(kFlat) + "search: [1]\n", "s.yaml:4:9: \"search\" must be a map of keys"},
      {std::string(kFlat) + "search: {candidates: []}\n",
       "s.yaml:4:22: \"search.candidates\" must be a list of at least one pair"},
      {std::string(kFlat) + "search: {candidates: [K8V4, K8V5]}\n", "s.yaml:4:29: pair \"K8V5\""},
      {std::string(kFlat) + "search: {candidates: [K8V4, K8V4]}\n",
       "s.yaml:4:29: candidate K8V4 is listed twice"},
      {std::string(kFlat) + "search: {candidates: [KV8, K8V8]}\n",
       "s.yaml:4:28: candidate K8V8 is listed twice"},
      {std::string(kFlat) + "name: two\n", "s.yaml:4:1: key \"name\" appears twice"},
      {std::string(kFlat) + "search: {seed: 1, seed: 2}\n",
       "s.yaml:4:19: key \"search.seed\" appears twice"},
      {std::string(kFlat) + "scheme: kivvi\n", "s.yaml:4:9: scheme \"kivvi\" is not known"},
      {std::string(kFlat) + "scheme: {name: kivi, group: head}\n",
       "s.yaml:4:9: scheme kivi cannot use `group: head`"},
      {std::string(kFlat) + "scheme: {group: 48}\n",
       "s.yaml:4:17: \"scheme.group\" is \"48\"; allowed are 32, 64, 128 and head"},
      {std::string(kFlat) + "scheme: {name: kivi, residual: 40}\n", "s.yaml:4:9: residual 40"},
      {std::string(kFlat) + "scheme: {prefill: lazy}\n", "s.yaml:4:19: prefill \"lazy\""},
      {std::string(kFlat) + "baseline_kv: fp8\n", "s.yaml:4:14: baseline KV type \"fp8\""},
      {std::string(kFlat) + "scheme: {group: 64}\nsearch: {candidates: [Knvfp4Vfp8, K16V16]}\n",
       "s.yaml:4:9: group has no effect"},
      {std::string(kFlat) + "scheme: {symmetric: true}\nsearch: {candidates: [Kfp8Vfp8]}\n",
       "s.yaml:4:9: symmetric has no effect"},
      {std::string(kFlat) + "limits: {max_loss: -0.1}\n", "s.yaml:4:20: \"limits.max_loss\" is"},
      {std::string(kFlat) + "limits: {max_loss: 1.5}\n",
       "s.yaml:4:20: \"limits.max_loss\" is 1.5; a loss of answer_agreement lies between 0 and 1"},
      {std::string(kFlat) + "limits: {max_bits: .nan}\n", "s.yaml:4:20: \"limits.max_bits\" is"},
      {std::string(kFlat) + "at: {context: 0}\n", "s.yaml:4:15: \"at.context\" is \"0\""},
      {"name: a\nmodel: /m\n", "s.yaml:1:1: key \"objective_task\" is missing"},
      {"name: a\nobjective_task: gsm8k\n", "s.yaml:1:1: key \"model\" is missing"},
      {"model: /m\nobjective_task: gsm8k\n", "s.yaml:1:1: key \"name\" is missing"},
      {"name: a/b\nmodel: /m\nobjective_task: gsm8k\n", "s.yaml:1:7: \"name\" must be at most"},
      {"name: a\nmodel: /m\nobjective_task: gsm9k\n", "s.yaml:3:17: task \"gsm9k\" is not known"},
      {"name: a\nmodel: /m\nobjective_task: {name: gsm8k, split: dev}\n",
       "s.yaml:3:38: task gsm8k has no split \"dev\"; allowed are test, train"},
      {"name: a\nmodel: /m\nobjective_task: {name: gsm8k, metric: accuracy}\n",
       "s.yaml:3:39: metric \"accuracy\" is not known"},
      {"name: a\nmodel: /m\nobjective_task: {name: gsm8k, seed: 3}\n", "s.yaml:3:37: task gsm8k"},
      {"name: a\nmodel: /m\nobjective_task: {shots: 3}\n",
       "s.yaml:3:17: key \"objective_task.name\" is missing"},
      {std::string(kFlat) + "report_tasks: gsm8k\n",
       "s.yaml:4:15: \"report_tasks\" must be a list"},
      {std::string(kFlat) + "report_tasks: [{name: gsm8k, splt: train}]\n",
       "s.yaml:4:30: unknown key \"splt\" in \"report_tasks[0]\"; did you mean \"split\"?"},
      {std::string(kFlat) + "report_tasks: [{name: gsm8k, split: test}]\n",
       "s.yaml:4:16: this report task uses the data of the search (gsm8k, split test)"},
      {"sweep: s\nstudies: []\n", "s.yaml:2:10: \"studies\" must be a list of at least one study"},
      {"sweep: s\n", "s.yaml:1:1: \"studies\" must be a list of at least one study"},
      {"sweep: s\nstudies: {a: 1}\n", "s.yaml:2:10: \"studies\" must be a list"},
      {"studies:\n  - {name: a, model: /m, objective_task: gsm8k}\n",
       "s.yaml:1:1: a spec with \"studies\" needs a name in \"sweep\""},
      {"sweep: s\nsearch: {}\nstudies: [{name: a}]\n",
       "s.yaml:2:1: key \"search\" belongs under \"defaults\""},
      {"sweep: s\ndefaults: {name: x}\nstudies: [{name: a}]\n", "s.yaml:2:18: \"defaults.name\""},
      {"sweep: s\ndefaults: {objective_task: gsm8k}\nstudies:\n  - {name: a, model: /m}\n"
       "  - {name: a, model: /n}\n",
       "s.yaml:5:12: two studies are called \"a\""},
      {"sweep: s\nstudies:\n  - {name: a, model: /m, objectiv_task: gsm8k}\n",
       "s.yaml:3:26: unknown key \"objectiv_task\" in \"studies[0]\"; did you mean "
       "\"objective_task\"?"},
      {"sweep: s\nstudies:\n  - 5\n", "s.yaml:3:5: \"studies[0]\" must be a map of keys"},
      {"", "s.yaml: the file is empty"},
      {"# nothing\n", "s.yaml: the file is empty"},
      {"- a\n- b\n", "s.yaml:1:1: the file must be a map of keys"},
      {"name: [a\n", "s.yaml:2:1: not valid YAML"},
      {"name: a\n---\nname: b\n", "s.yaml: holds several YAML documents"},
      {"? [a]\n: b\n", "s.yaml:1:3: a key must be a plain word"},
  };
  for (const auto& [yaml, expected] : cases) EXPECT_THAT(message(yaml), StartsWith(expected));
}

TEST(StudySpec, LossLimitOfKlMayExceedOne) {
  EXPECT_EQ(parsed("name: a\nmodel: /m\nobjective_task: {name: gsm8k, metric: kl}\n"
                   "limits: {max_loss: 1.5}\n")
                .studies[0]
                .limits.max_loss,
            1.5);
}

TEST(StudySpec, HostileYamlIsAnErrorAndNotACrash) {
  EXPECT_FALSE(parse_spec(std::string(100000, '['), "s").ok());
  EXPECT_FALSE(parse_spec("&a [*a]", "s").ok());
  EXPECT_FALSE(parse_spec("name: &a [*a]\n", "s").ok());
  EXPECT_FALSE(parse_spec("sweep: s\nstudies: &a [*a]\n", "s").ok());
  EXPECT_FALSE(parse_spec("name: a\nmodel: m\nreport_tasks: &a [*a]\n", "s").ok());
  EXPECT_FALSE(parse_spec("*unknown\n", "s").ok());
  EXPECT_FALSE(parse_spec("\xff\xfe\x00", "s").ok());
  EXPECT_FALSE(parse_spec("name: \"\xff\"\n", "s").ok());
  EXPECT_FALSE(parse_spec(std::string(8 << 20, 'a'), "s").ok());
}

// Every prefix of a valid spec either parses or is refused.
TEST(StudySpec, EveryTruncationIsHandled) {
  const std::string yaml = kSweep;
  for (size_t n = 0; n < yaml.size(); ++n) {
    const auto sweep = parse_spec(yaml.substr(0, n), "s.yaml", kOptions);
    if (!sweep.ok()) {
      EXPECT_THAT(sweep.error().message, StartsWith("s.yaml:"));
    }
  }
}

TEST(StudySpec, RelativeModelCountsFromTheFile) {
  const test::TempDir dir;
  const std::string path =
      dir.write("specs/a.yaml", "name: a\nmodel: ../models/small\nobjective_task: gsm8k\n");
  const auto sweep = read_spec(path, kOptions);
  ASSERT_TRUE(sweep.ok()) << sweep.error().message;
  EXPECT_EQ(sweep->studies[0].model, dir.file("models/small"));
  EXPECT_EQ(read_spec(dir.file("none.yaml")).error().code, ErrorCode::not_found);
}

TEST(StudySpec, JsonRoundTrip) {
  for (const StudySpec& study : parsed(kSweep).studies) {
    const Json json = to_json(study);
    const auto back = study_spec_from_json(json);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(to_json(*back), json);
    EXPECT_TRUE(canonical_json(json).ok());
  }
  Json bad = to_json(parsed(kFlat).studies[0]);
  bad["search"]["trials"] = 0;
  EXPECT_FALSE(study_spec_from_json(bad).ok());
}

TEST(SpecKeys, EveryKeyIsDocumentedAndReadable) {
  for (const SpecKey& key : spec_keys()) {
    EXPECT_FALSE(key.type.empty() || key.meaning.empty()) << key.path;
  }
  // Every documented key is accepted: a spec that sets all of them parses.
  parsed(R"(name: all
model: /m
scheme: {name: kivi, group: 32, residual: 32, prefill: stepwise, sinks: 4, symmetric: true,
         hadamard: keys}
baseline_kv: bf16
search: {algorithm: random, trials: 5, population: 4, seed: 3, groups: 2, candidates: [KV4]}
limits: {max_bits: 6, max_loss: 0.1}
at: {context: 1024, batch: 2}
objective_task: {name: word_problems, metric: exact_match, shots: 1, split: search, seed: 2,
                 examples: 3, max_new_tokens: 16}
report_tasks: [{name: recall, split: report, length: 512}]
)");
  const auto shared = parsed(R"(name: share
model: /m
scheme: {name: kvmix, share: 0.3}
objective_task: word_problems
)");
  EXPECT_EQ(shared.studies[0].scheme.share, 3);
  // name, model, scheme and its 10, baseline_kv, search 6, limits 2, at 2, objective_task and its
  // 11, report_tasks.
  EXPECT_EQ(spec_keys().size(), 3u + 10 + 1 + 6 + 2 + 2 + 1 + 11 + 1);
}

}  // namespace
}  // namespace kvsweep
