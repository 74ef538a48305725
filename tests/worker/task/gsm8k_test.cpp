#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hash.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/math_answer.hpp"
#include "worker/task/problem_file.hpp"

namespace kvsweep::task {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::protocol_of;

Result<std::unique_ptr<Task>> open(const std::string& dir, const std::string& split, int shots) {
  return open_task(protocol_of("gsm8k", split, shots), {.data_dir = dir});
}

class Gsm8kData : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::data_dir()) GTEST_SKIP() << testing::kNoData;
    dir_ = *testing::data_dir();
  }
  Problems rows(const std::string& split) {
    return read_problems(dir_ + "/gsm8k/" + split + ".jsonl").value();
  }
  std::string dir_;
};

// lmeval_fewshot_indices.json: the train rows that lm-eval draws for every test row. The prompt is
// put together here from the rows, so draws and form are both compared.
TEST_F(Gsm8kData, ShotsEqualLmEvalsForEveryTestRow) {
  const Json indices = read_json_file(dir_ + "/gsm8k/lmeval_fewshot_indices.json").value();
  const Problems train = rows("train");
  const Problems test = rows("test");
  ASSERT_EQ(test.size(), 1319u);
  for (int shots : {4, 5, 8, 16}) {
    const auto task = open(dir_, "test", shots).value();
    const Json& expected = indices.at(std::to_string(shots));
    ASSERT_EQ(task->size(), 1319);
    ASSERT_EQ(expected.size(), 1319u);
    for (size_t i = 0; i < test.size(); ++i) {
      std::string prompt;
      for (size_t row : expected[i]) {
        prompt += "Question: " + train[row].question + "\nAnswer: " + train[row].answer + "\n\n";
      }
      prompt += "Question: " + test[i].question + "\nAnswer:";
      ASSERT_EQ(task->example(static_cast<int64_t>(i)).value().prompt, prompt)
          << shots << " shots, row " << i;
    }
  }
}

// Hashes of prompts that make_goldens.py put together with Python's random.
TEST_F(Gsm8kData, FirstPromptsEqualPythonsByHash) {
  const Json golden = testing::golden("prompts.json");
  for (int shots : {4, 5, 8}) {
    const auto task = open(dir_, "test", shots).value();
    const Json& hashes = golden.at(std::to_string(shots));
    ASSERT_EQ(hashes.size(), 40u);
    for (size_t i = 0; i < hashes.size(); ++i) {
      EXPECT_EQ(sha256_hex(task->example(static_cast<int64_t>(i)).value().prompt), hashes[i])
          << shots << " shots, row " << i;
    }
  }
}

TEST_F(Gsm8kData, GoldAnswersScoreOneWithBothFilters) {
  for (const auto& [split, size] : {std::pair{"test", 1319}, {"train", 7473}}) {
    const auto task = open(dir_, split, 0).value();
    int exact = 0;
    int strict = 0;
    for (int64_t i = 0; i < task->size(); ++i) {
      const Example example = task->example(i).value();
      const Score score = task->score(example, " " + example.golds.front());
      exact += score.exact_match == 1;
      strict += score.strict_match == 1;
    }
    EXPECT_EQ(exact, size) << split;
    EXPECT_EQ(strict, size) << split;
  }
}

TEST_F(Gsm8kData, TrainRowsAreNeverTheirOwnShots) {
  const Problems train = rows("train");
  const auto task = open(dir_, "train", 16).value();
  ASSERT_EQ(task->size(), 7473);
  for (size_t i = 0; i < train.size(); ++i) {
    const std::string prompt = task->example(static_cast<int64_t>(i)).value().prompt;
    const size_t own = prompt.find("Question: " + train[i].question + "\nAnswer:");
    EXPECT_EQ(own, prompt.rfind("Question: ")) << "row " << i;
  }
}

// random.Random(1234).sample(range(4), 2), time after time in CPython: [3, 0] [0, 3] [0, 2] [0, 3]
// [2, 0] [0, 3] [0, 1] [3, 2] [3, 0] ... In the split train example 0 refuses the first seven, all
// of which hold it, and takes [3, 2]; example 1 takes [3, 0].
TEST(Gsm8k, TrainDrawsAgainWhenASampleHoldsTheExample) {
  test::TempDir dir;
  testing::write_tiny_gsm8k(dir.path(), 4, 1);
  const auto task = open(dir.path().string(), "train", 2).value();
  const auto shot = [](const std::string& n) {
    return "Question: train question " + n + "?\nAnswer: It is <<" + n +
           "+1=" + std::to_string(std::stoi(n) + 1) + ">>" + std::to_string(std::stoi(n) + 1) +
           ".\n#### " + std::to_string(std::stoi(n) + 1) + "\n\n";
  };
  EXPECT_EQ(task->example(0).value().prompt,
            shot("3") + shot("2") + "Question: train question 0?\nAnswer:");
  EXPECT_EQ(task->example(1).value().prompt,
            shot("3") + shot("0") + "Question: train question 1?\nAnswer:");
}

TEST(Gsm8k, MissingFoldersNameTheOptionAndTheVariable) {
  test::TempDir dir;
  const auto named = AllOf(HasSubstr("--data-dir"), HasSubstr("KVSWEEP_DATA_DIR"));
  EXPECT_THAT(open("", "test", 5).error().message, named);
  EXPECT_THAT(open(dir.file("absent"), "test", 5).error().message,
              AllOf(named, HasSubstr(dir.file("absent") + "/gsm8k/test.jsonl")));
  testing::write_tiny_gsm8k(dir.path(), 5, 2);
  std::filesystem::remove(dir.path() / "gsm8k" / "train.jsonl");
  EXPECT_THAT(open(dir.path().string(), "test", 2).error().message,
              AllOf(named, HasSubstr("train.jsonl")));
  EXPECT_TRUE(open(dir.path().string(), "test", 0).ok());  // no shots, no train
}

TEST(Gsm8k, BrokenDataNamesFileAndLine) {
  test::TempDir dir;
  testing::write_tiny_gsm8k(dir.path(), 3, 2);
  const std::string path =
      dir.write("gsm8k/train.jsonl", "{\"question\":\"q\",\"answer\":\"a\"}\n{\"question\":\n");
  EXPECT_THAT(open(dir.path().string(), "test", 1).error().message, HasSubstr(path + ":2: "));
}

TEST(Gsm8k, TooManyShotsForTheTrainSplit) {
  test::TempDir dir;
  testing::write_tiny_gsm8k(dir.path(), 3, 2);
  const std::string folder = dir.path().string();
  EXPECT_TRUE(open(folder, "test", 3).ok());
  EXPECT_THAT(open(folder, "test", 4).error().message, HasSubstr("only 3 train problems"));
  EXPECT_TRUE(open(folder, "train", 2).ok());
  EXPECT_THAT(open(folder, "train", 3).error().message, HasSubstr("only 2 train problems"));
}

}  // namespace
}  // namespace kvsweep::task
