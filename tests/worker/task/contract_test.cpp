// What every line of core/catalog/tasks.def must do; a new task is tested by being in the table.
// Tasks that need data run on a tiny data set in the published form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "core/hash.hpp"
#include "core/text.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/worker/task/task_testing.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;
using testing::protocol_of;

// One task of every line; of a family that of a file which the fixture writes.
std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskInfo& info : tasks()) names.push_back(testing::sample_task(info));
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

class TaskContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { testing::write_tiny_data(dir_.path()); }
  TaskInfo task_info_() const { return task_info(GetParam()).value(); }
  std::vector<std::string> splits() const { return split(task_info_().splits, ','); }
  std::vector<std::string> forms() const { return split(task_info_().forms, ','); }
  TaskInputs inputs() const {
    return {dir_.path().string(),
            task_info_().needs_tokenizer ? testing::reference_tokenizer() : nullptr};
  }
  Result<std::unique_ptr<Task>> open(const TaskProtocol& protocol) const {
    return open_task(protocol, inputs());
  }
  TaskProtocol protocol(const std::string& split, int shots) const {
    TaskProtocol made = protocol_of(GetParam(), split, shots, task_info_().seeded ? 4 : 0);
    made.form = task_form_from(forms().front()).value();
    if (task_info_().data == "ruler") made.length = std::min(made.length, 2000);
    if (GetParam() == "needle") made.length = 6000;
    return made;
  }
  // Making rows to a length takes a while.
  int64_t looked_at(const Task& task) const {
    return std::min<int64_t>(task.size(), task_info_().needs_tokenizer ? 6 : 4000);
  }
  // Their texts do not depend on the form.
  std::vector<std::string> looked_at_forms() const {
    return task_info_().needs_tokenizer ? std::vector{forms().front()} : forms();
  }
  test::TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Table, TaskContract, ::testing::ValuesIn(task_names()), test_name);

bool asks_something(const Example& example, RunMode kind) {
  if (kind == RunMode::choices) return example.choices.size() > 1 && !example.prompt.empty();
  return !example.prompt.empty() || example.tokens.size() > 1;
}

TEST_P(TaskContract, ExamplesAreThereStableAndDistinct) {
  for (const std::string& split : splits()) {
    for (const std::string& form : looked_at_forms()) {
      TaskProtocol wanted = protocol(split, task_info_().default_shots);
      wanted.form = task_form_from(form).value();
      const auto first = open(wanted);
      ASSERT_TRUE(first.ok()) << first.error().message;
      const auto second = open(wanted);
      ASSERT_GT((*first)->size(), 0);
      std::set<std::string> hashes;
      for (int64_t i = 0; i < looked_at(**first); ++i) {
        const Example a = (*first)->example(i).value();
        const Example b = (*second)->example(i).value();
        EXPECT_EQ(a.prompt, b.prompt);
        EXPECT_EQ(a.stops, b.stops);
        EXPECT_EQ(a.golds, b.golds);
        EXPECT_EQ(a.hash, b.hash);
        EXPECT_EQ(a.hash, example_hash(a));
        EXPECT_EQ(a.hash.size(), 64u);
        EXPECT_TRUE(hashes.insert(a.hash).second) << split << " " << i;
        EXPECT_TRUE(asks_something(a, task_info_().kind)) << split << " " << i;
        for (const std::string& stop : a.stops) EXPECT_FALSE(stop.empty());
      }
    }
  }
}

TEST_P(TaskContract, ShotsComeBeforeTheQuestion) {
  if (task_info_().default_shots == 0) GTEST_SKIP() << "a task without shots";
  const auto bare = open(protocol(splits().front(), 0)).value()->example(0).value();
  for (const std::string& form : forms()) {
    TaskProtocol wanted = protocol(splits().front(), 2);
    wanted.form = task_form_from(form).value();
    const Example example = open(wanted).value()->example(0).value();
    EXPECT_EQ(example.turns.size(), form == "multiturn" ? 4u : 0u);
    EXPECT_TRUE(example.prompt.ends_with(bare.prompt));
    EXPECT_EQ(example.prompt == bare.prompt, form == "multiturn");
  }
}

TEST_P(TaskContract, TheGoldScoresOneAndNothingScoresZero) {
  if (task_info_().kind != RunMode::generate) GTEST_SKIP() << "nothing is generated";
  for (const std::string& split : splits()) {
    const auto task = open(protocol(split, 0)).value();
    for (int64_t i = 0; i < looked_at(*task); ++i) {
      const Example example = task->example(i).value();
      const std::string gold = " " + join(example.golds, ", ");
      const Score right = task->score(example, gold);
      EXPECT_EQ(right.exact_match, 1) << gold;
      EXPECT_LE(right.strict_match.value_or(1), 1);
      const Score silence = task->score(example, "");
      EXPECT_EQ(silence.exact_match, 0);
      EXPECT_EQ(silence.answer, "[invalid]");
      // What follows a stop does not count.
      for (const std::string& stop : example.stops) {
        EXPECT_EQ(task->score(example, gold + stop + " 987654").exact_match, 1);
        EXPECT_EQ(task->score(example, stop + gold).exact_match, 0);
      }
    }
  }
}

TEST_P(TaskContract, HalvesOfTheRowsPartTheWhole) {
  TaskProtocol wanted = protocol(splits().front(), 0);
  const auto whole = open(wanted).value();
  // Both halves read every example.
  if (whole->size() > 100 && task_info_().needs_tokenizer) GTEST_SKIP() << "too slow for a test";
  std::multiset<std::string> together;
  for (const std::string& half : row_halves()) {
    wanted.rows = half;
    const auto part = open(wanted);
    // A sample of one example has an empty half.
    if (!part.ok() && whole->size() < 8) GTEST_SKIP() << part.error().message;
    ASSERT_TRUE(part.ok()) << part.error().message;
    for (int64_t i = 0; i < (*part)->size(); ++i) {
      together.insert((*part)->example(i).value().hash);
    }
    EXPECT_FALSE((*part)->example((*part)->size()).ok());
  }
  std::multiset<std::string> all;
  for (int64_t i = 0; i < whole->size(); ++i) all.insert(whole->example(i).value().hash);
  EXPECT_EQ(together, all);
  wanted.rows = "both";
  EXPECT_THAT(open(wanted).error().message, HasSubstr("allowed are search, report"));
}

TEST_P(TaskContract, TheHashCoversTheContent) {
  const auto task = open(protocol(splits().front(), 0)).value();
  const Example example = task->example(0).value();
  EXPECT_EQ(example.hash, example_hash(example));
  std::set<std::string> hashes = {example.hash};
  Example changed = example;
  changed.prompt += " ";
  hashes.insert(example_hash(changed));
  changed = example;
  changed.golds.emplace_back("x");
  hashes.insert(example_hash(changed));
  changed = example;
  changed.stops.emplace_back("x");
  hashes.insert(example_hash(changed));
  changed = example;
  changed.turns.push_back({"user", "x"});
  hashes.insert(example_hash(changed));
  changed = example;
  changed.turns.push_back({"assistant", "x"});
  hashes.insert(example_hash(changed));
  changed = example;
  changed.answer_prefix += "x";
  hashes.insert(example_hash(changed));
  changed = example;
  changed.choices.emplace_back("x");
  hashes.insert(example_hash(changed));
  changed = example;
  changed.tokens.push_back(7);
  hashes.insert(example_hash(changed));
  changed = example;
  changed.classes.emplace_back("x");
  hashes.insert(example_hash(changed));
  changed = example;
  changed.scored_by += "x";
  hashes.insert(example_hash(changed));
  for (const int member : {0, 1, 2, 3}) {
    changed = example;
    if (member == 0) changed.as_text = !changed.as_text;
    if (member == 1) changed.newline_ends = !changed.newline_ends;
    if (member == 2) changed.unscored += 1;
    if (member == 3) changed.words += 1;
    hashes.insert(example_hash(changed));
  }
  EXPECT_EQ(hashes.size(), 15u);
  if (example.stops.empty()) return;
  changed = example;  // the same bytes, divided differently
  changed.prompt.pop_back();
  changed.stops.front() = example.prompt.back() + changed.stops.front();
  EXPECT_TRUE(hashes.insert(example_hash(changed)).second);
}

TEST_P(TaskContract, ExamplesOutsideTheSplitAreErrors) {
  const auto task = open(protocol(splits().front(), 0)).value();
  for (int64_t index : {int64_t{-1}, task->size(), int64_t{1} << 40}) {
    const auto example = task->example(index);
    ASSERT_FALSE(example.ok());
    EXPECT_EQ(example.error().code, ErrorCode::bad_input);
    EXPECT_THAT(example.error().message, HasSubstr(std::to_string(index)));
  }
}

TEST_P(TaskContract, WrongProtocolsAreRefused) {
  const TaskProtocol good = protocol(splits().front(), 0);
  const auto message = [&](const TaskProtocol& wrong) {
    const auto opened = open(wrong);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? "" : opened.error().message;
  };
  TaskProtocol wrong = good;
  wrong.version = "0.9";
  EXPECT_THAT(message(wrong), HasSubstr("version 0.9"));
  wrong = good;
  wrong.split = "validation";
  EXPECT_THAT(message(wrong), HasSubstr("allowed are " + splits().front()));
  wrong = good;
  wrong.shots = -1;
  EXPECT_THAT(message(wrong), HasSubstr("shots is -1"));
  wrong.shots = 65;
  EXPECT_THAT(message(wrong), HasSubstr("shots is 65; allowed are 0 to 64"));
  wrong = good;
  if (task_info_().kind == RunMode::generate) {
    wrong.max_new_tokens = 0;
    EXPECT_THAT(message(wrong), HasSubstr("max_new_tokens is 0"));
  }
  if (!task_info_().forms.ends_with("multiturn")) {
    wrong = good;
    wrong.form = TaskForm::multiturn;
    if (task_info_().forms.find("multiturn") == std::string_view::npos) {
      EXPECT_THAT(message(wrong), HasSubstr("has no form \"multiturn\""));
    }
  }
  wrong = good;
  wrong.name = "x" + wrong.name;
  EXPECT_THAT(message(wrong), HasSubstr(GetParam()));
}

TEST_P(TaskContract, NeedsDataOnlyWhenTheTableSaysSo) {
  TaskInputs none = inputs();
  none.data_dir.clear();
  const auto opened = open_task(protocol(splits().front(), 0), none);
  EXPECT_EQ(opened.ok(), task_info_().data.empty());
  if (!opened.ok()) {
    EXPECT_THAT(opened.error().message, HasSubstr("--data-dir"));
  }
}

}  // namespace
}  // namespace kvsweep::task
