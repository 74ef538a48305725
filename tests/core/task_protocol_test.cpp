#include "core/task_protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/measurement.hpp"
#include "core/study_spec.hpp"

namespace kvsweep {
namespace {

using ::testing::HasSubstr;

TaskProtocol gsm8k() {
  return make_task({.name = "gsm8k"})->protocol;
}

TEST(Tasks, DefaultsComeFromTheCatalog) {
  const auto task = make_task({.name = "gsm8k"});
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->protocol.version, "3.0");
  EXPECT_EQ(task->protocol.shots, 5);
  EXPECT_EQ(task->protocol.split, "test");
  EXPECT_EQ(task->protocol.max_new_tokens, 256);
  EXPECT_EQ(task->examples, 0);
  EXPECT_EQ(task->metric, Metric::exact_match);
  EXPECT_EQ(make_task({.name = "word_problems"})->protocol.split, "search");
}

TEST(Tasks, ErrorsNameValueAndAllowed) {
  EXPECT_THAT(make_task({.name = "gsm8"}).error().message, HasSubstr("did you mean gsm8k?"));
  EXPECT_THAT(make_task({.name = "gsm8k", .split = "tset"}).error().message,
              HasSubstr("did you mean test?"));
  EXPECT_THAT(make_task({.name = "gsm8k", .seed = 4}).error().message, HasSubstr("seed"));
  EXPECT_TRUE(make_task({.name = "word_problems", .seed = 4}).ok());
  EXPECT_THAT(make_task({.name = "gsm8k", .length = 512}).error().message,
              HasSubstr("a length has no meaning"));
  EXPECT_THAT(make_task({.name = "recall", .length = 0}).error().message, HasSubstr("length is 0"));
  EXPECT_EQ(make_task({.name = "recall"})->protocol.length, 256);
  EXPECT_THAT(make_task({.name = "gsm8k", .metric = "exactmatch"}).error().message,
              HasSubstr("did you mean exact_match?"));
  EXPECT_THAT(make_task({.name = "gsm8k", .shots = -1}).error().message, HasSubstr("shots is -1"));
  EXPECT_FALSE(make_task({.name = "gsm8k", .examples = int64_t{1} << 40}).ok());
}

TEST(Metrics, NamesAndModes) {
  for (const std::string& name : metric_names()) EXPECT_EQ(to_string(*metric_from(name)), name);
  EXPECT_EQ(mode_of(gsm8k(), Metric::exact_match), RunMode::generate);
  EXPECT_EQ(mode_of(gsm8k(), Metric::answer_agreement), RunMode::generate);
  EXPECT_EQ(mode_of(gsm8k(), Metric::token_agreement), RunMode::forced);
  EXPECT_EQ(mode_of(gsm8k(), Metric::kl), RunMode::forced);
  EXPECT_THAT(make_task({.name = "gsm8k", .metric = "nll"}).error().message,
              HasSubstr("does not measure nll; allowed are exact_match"));
}

TEST(ProtocolHash, EveryFieldAndTheModeCount) {
  std::set<std::string> hashes;
  const auto add = [&](const TaskProtocol& protocol, RunMode mode) {
    EXPECT_TRUE(hashes.insert(protocol_hash(protocol, mode)).second);
  };
  add(gsm8k(), RunMode::generate);
  add(gsm8k(), RunMode::forced);
  for (int field = 0; field < 10; ++field) {
    TaskProtocol changed = gsm8k();
    if (field == 0) changed.name = "other";
    if (field == 1) changed.version = "3.1";
    if (field == 2) changed.split = "train";
    if (field == 3) changed.shots = 4;
    if (field == 4) changed.seed = 1;
    if (field == 5) changed.max_new_tokens = 257;
    if (field == 6) changed.length = 256;
    if (field == 7) changed.form = TaskForm::chat;
    if (field == 8) changed.context = 2048;
    if (field == 9) changed.rows = "search";
    EXPECT_EQ(*task_protocol_from_json(to_json(changed)), changed);
    add(changed, RunMode::generate);
  }
  EXPECT_EQ(protocol_hash(gsm8k(), RunMode::generate),
            protocol_hash(*task_protocol_from_json(to_json(gsm8k())), RunMode::generate));
  // A task without a length does not mention it: its recorded measurements keep their keys.
  EXPECT_FALSE(to_json(gsm8k()).contains("length"));
  EXPECT_FALSE(to_json(gsm8k()).contains("form"));
  EXPECT_FALSE(to_json(gsm8k()).contains("context"));
  EXPECT_FALSE(to_json(gsm8k()).contains("rows"));
  const TaskProtocol recall = make_task({.name = "recall", .length = 512})->protocol;
  EXPECT_EQ(task_protocol_from_json(to_json(recall))->length, 512);
}

TEST(MeasurementKey, EveryFieldCounts) {
  const MeasurementKey key{"model", "map", "protocol", "example", "cpu", BaseType::fp16};
  std::set<std::string> keys = {key.key()};
  for (int field = 0; field < 6; ++field) {
    MeasurementKey changed = key;
    if (field == 0) changed.model_hash += "x";
    if (field == 1) changed.map_id += "x";
    if (field == 2) changed.protocol_hash += "x";
    if (field == 3) changed.example_hash += "x";
    if (field == 4) changed.numerics_class += "x";
    if (field == 5) changed.base = BaseType::bf16;
    EXPECT_TRUE(keys.insert(changed.key()).second);
  }
  // Fields do not run into each other.
  EXPECT_NE((MeasurementKey{"ab", "c", "", "", ""}.key()),
            (MeasurementKey{"a", "bc", "", "", ""}.key()));
}

TEST(MeasurementJson, RoundTripKeepsWhatIsThereAndWhatIsNot) {
  Measurement m;
  m.example = 17;
  m.example_hash = "abc";
  m.text = "so 4 + 5 = 9\n";
  m.tokens = {1, 2, 2147483647};
  m.answer = "9";
  m.exact_match = 1.0;
  m.kl = 0.03125;
  m.prompt_tokens = 800;
  m.output_tokens = 3;
  m.cache_bytes = 123456;
  m.timings = {12.5, 33.25};
  const auto back = measurement_from_json(to_json(m));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(m));
  EXPECT_EQ(back->exact_match, 1.0);
  EXPECT_FALSE(back->strict_match.has_value());
  EXPECT_FALSE(back->token_agreement.has_value());
  EXPECT_EQ(back->tokens, m.tokens);
  EXPECT_FALSE(back->draft.has_value());
  m.draft = DraftUse{3, 40, 31, -1, 0};
  EXPECT_EQ(measurement_from_json(to_json(m)).value().draft, m.draft);
}

TEST(MeasurementJson, RefusesImpossibleNumbers) {
  const Json good = to_json(Measurement{});
  ASSERT_TRUE(measurement_from_json(good).ok());
  const std::pair<const char*, Json> cases[] = {
      {"exact_match", 1.5}, {"token_agreement", -0.1}, {"kl", NAN},       {"kl", -1.0},
      {"tokens", {-1}},     {"example", -1},           {"decode_ms", -1}, {"text", "\xff"},
      {"cache_bytes", 1e3}, {"nll", INFINITY},
  };
  for (const auto& [key, value] : cases) {
    Json bad = good;
    bad[key] = value;
    EXPECT_FALSE(measurement_from_json(bad).ok()) << key;
  }
}

}  // namespace
}  // namespace kvsweep
