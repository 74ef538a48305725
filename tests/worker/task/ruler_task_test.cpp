// RULER and the needle test as tasks: splits, scores and mistakes.
#include "worker/task/ruler/ruler_task.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/text.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/ruler/needle.hpp"

namespace kvsweep::task::ruler {
namespace {

using ::testing::HasSubstr;

// Four characters a token.
Result<int64_t> quarter(const std::string& text) {
  return static_cast<int64_t>(text.size() / 4 + 1);
}

class RulerTasks : public ::testing::Test {
 protected:
  void SetUp() override { task::testing::write_tiny_ruler(dir_.path()); }

  static TaskProtocol protocol(const std::string& name, const std::string& split, int length) {
    TaskProtocol made;
    made.name = name;
    made.version = "1.0";
    made.split = split;
    made.seed = 3;
    made.max_new_tokens = 30;
    made.length = length;
    return made;
  }

  Result<std::unique_ptr<Task>> open(const TaskProtocol& protocol) const {
    return open_ruler(protocol, dir_.path().string(), quarter);
  }

  test::TempDir dir_;
};

TEST_F(RulerTasks, GoldScoresOneSilenceNothingAndAPartItsShare) {
  std::vector<std::string> names = {"needle"};
  for (const std::string& subtask : subtask_names()) names.push_back("ruler/" + subtask);
  for (const std::string& name : names) {
    const int length = name == "needle" ? 8000 : 2000;
    const auto opened = open(protocol(name, "search", length));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const Task& task = **opened;
    std::set<std::string> hashes;
    for (const int64_t i : {int64_t{0}, int64_t{1}, task.size() - 1}) {
      const Example example = task.example(i).value();
      EXPECT_TRUE(hashes.insert(example.hash).second);
      EXPECT_EQ(example.hash, example_hash(example));
      EXPECT_LE(quarter(example.prompt + example.answer_prefix).value(), length);
      EXPECT_EQ(task.score(example, "It is " + join(example.golds, ", ")).exact_match, 1);
      EXPECT_EQ(task.score(example, "").exact_match, 0);
      EXPECT_EQ(task.score(example, "").answer, "[invalid]");
      const std::vector<std::string>& references = example.golds;
      const Score part = task.score(example, "..." + references[0]);
      EXPECT_DOUBLE_EQ(part.exact_match, 1.0 / static_cast<double>(references.size())) << name;
      EXPECT_EQ(part.answer, references[0]);
    }
  }
}

TEST_F(RulerTasks, SplitsShareNoRow) {
  for (const std::string name : {"ruler/niah_single_1", "ruler/vt", "needle"}) {
    std::set<std::string> seen;
    for (const std::string split : {"search", "report"}) {
      const int length = name == "needle" ? 4000 : 1000;
      const auto task = open(protocol(name, split, length)).value();
      const int64_t count = std::min<int64_t>(task->size(), 100);
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_TRUE(seen.insert(task->example(i).value().hash).second) << name << " " << i;
      }
    }
  }
  const int64_t both = open(protocol("needle", "search", 4000)).value()->size() +
                       open(protocol("needle", "report", 4000)).value()->size();
  EXPECT_EQ(both, NeedleGrid::kSize);
}

TEST_F(RulerTasks, TheNeedleIsAlsoScoredByRouge) {
  const auto task = open(protocol("needle", "search", 4000)).value();
  const Example example = task->example(0).value();
  EXPECT_EQ(task->score(example, NeedleGrid::needle()).strict_match, 1.0);
  // One word of 4 and of 21 in common, "do": F = 2 / (4 + 21).
  EXPECT_DOUBLE_EQ(*task->score(example, "I do not know").strict_match, 2.0 / 25);
}

TEST_F(RulerTasks, MistakesAreExplained) {
  const auto message = [&](const TaskProtocol& wrong) {
    const auto opened = open(wrong);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? std::string() : opened.error().message;
  };
  EXPECT_THAT(message(protocol("ruler/qa_1", "search", 2000)), HasSubstr("niah_single_1"));
  EXPECT_THAT(message(protocol("gsm8k", "search", 2000)), HasSubstr("ruler/ and one of"));
  EXPECT_THAT(message(protocol("ruler/vt", "test", 2000)), HasSubstr("allowed are search, report"));
  EXPECT_THAT(message(protocol("ruler/vt", "search", 50)), HasSubstr("length is 50 tokens"));
  TaskProtocol wrong = protocol("ruler/vt", "search", 2000);
  wrong.max_new_tokens = 31;
  EXPECT_THAT(message(wrong), HasSubstr("max_new_tokens is 31; at most 30"));
  wrong = protocol("needle", "search", 4000);
  wrong.shots = 1;
  EXPECT_THAT(message(wrong), HasSubstr("shots is 1; it must be 0"));
  std::ofstream(dir_.path() / "ruler" / "verblist.txt") << "run\nwalk\n";
  EXPECT_THAT(message(protocol("ruler/cwe", "search", 2000)), HasSubstr("holds 2 words"));
  const auto task = open_ruler(protocol("ruler/vt", "search", 2000), "", quarter);
  EXPECT_THAT(task.error().message, HasSubstr("--data-dir"));
}

}  // namespace
}  // namespace kvsweep::task::ruler
