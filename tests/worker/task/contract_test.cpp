// What every line of core/catalog/tasks.def must do; a new task is tested by being in the table.
// Tasks that need data run on a tiny data set in the published form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/hash.hpp"
#include "core/text.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/worker/task/task_testing.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;
using testing::protocol_of;

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskInfo& info : tasks()) names.emplace_back(info.name);
  return names;
}

class TaskContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { testing::write_tiny_gsm8k(dir_.path(), 40, 12); }
  TaskInfo task_info_() const { return task_info(GetParam()).value(); }
  std::vector<std::string> splits() const { return split(task_info_().splits, ','); }
  Result<std::unique_ptr<Task>> open(const TaskProtocol& protocol) const {
    return open_task(protocol, dir_.path().string());
  }
  TaskProtocol protocol(const std::string& split, int shots) const {
    return protocol_of(GetParam(), split, shots, 4);
  }
  test::TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Table, TaskContract, ::testing::ValuesIn(task_names()),
                         [](const auto& info) { return info.param; });

TEST_P(TaskContract, ExamplesAreThereStableAndDistinct) {
  for (const std::string& split : splits()) {
    for (int shots : {0, task_info_().default_shots}) {
      const auto first = open(protocol(split, shots));
      ASSERT_TRUE(first.ok()) << first.error().message;
      const auto second = open(protocol(split, shots));
      ASSERT_GT((*first)->size(), 0);
      std::set<std::string> hashes;
      for (int64_t i = 0; i < (*first)->size(); ++i) {
        const Example a = (*first)->example(i).value();
        const Example b = (*second)->example(i).value();
        EXPECT_EQ(a.prompt, b.prompt);
        EXPECT_EQ(a.stops, b.stops);
        EXPECT_EQ(a.gold, b.gold);
        EXPECT_EQ(a.hash, b.hash);
        EXPECT_EQ(a.hash.size(), 64u);
        EXPECT_TRUE(hashes.insert(a.hash).second) << split << " " << i;
        EXPECT_FALSE(a.prompt.empty());
        for (const std::string& stop : a.stops) EXPECT_FALSE(stop.empty());
      }
    }
  }
}

TEST_P(TaskContract, TheGoldScoresOneAndNothingScoresZero) {
  for (const std::string& split : splits()) {
    const auto task = open(protocol(split, 0)).value();
    for (int64_t i = 0; i < task->size(); ++i) {
      const Example example = task->example(i).value();
      const Score gold = task->score(example, " " + example.gold);
      EXPECT_EQ(gold.exact_match, 1) << example.gold;
      EXPECT_EQ(gold.strict_match.value_or(1), 1) << example.gold;
      const Score silence = task->score(example, "");
      EXPECT_EQ(silence.exact_match, 0);
      EXPECT_EQ(silence.answer, "[invalid]");
      // What follows a stop does not count.
      for (const std::string& stop : example.stops) {
        EXPECT_EQ(task->score(example, " " + example.gold + stop + " 987654").exact_match, 1);
        EXPECT_EQ(task->score(example, stop + example.gold).exact_match, 0);
      }
    }
  }
}

TEST_P(TaskContract, TheHashCoversPromptStopsAndGold) {
  const auto task = open(protocol(splits().front(), 1)).value();
  const Example example = task->example(0).value();
  EXPECT_EQ(example.hash, example_hash(example));
  std::set<std::string> hashes = {example.hash};
  Example changed = example;
  changed.prompt += " ";
  hashes.insert(example_hash(changed));
  changed = example;
  changed.gold += " ";
  hashes.insert(example_hash(changed));
  changed = example;
  changed.stops.emplace_back("x");
  hashes.insert(example_hash(changed));
  changed = example;  // the same bytes, divided differently
  changed.prompt.pop_back();
  changed.stops.front() = example.prompt.back() + changed.stops.front();
  hashes.insert(example_hash(changed));
  EXPECT_EQ(hashes.size(), 5u);
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
  wrong.max_new_tokens = 0;
  EXPECT_THAT(message(wrong), HasSubstr("max_new_tokens is 0"));
  wrong = good;
  wrong.name += "x";
  EXPECT_THAT(message(wrong), HasSubstr(GetParam()));
}

TEST_P(TaskContract, NeedsDataOnlyWhenTheTableSaysSo) {
  const auto opened = open_task(protocol(splits().front(), 0), "");
  EXPECT_EQ(opened.ok(), !task_info_().needs_data);
}

}  // namespace
}  // namespace kvsweep::task
