// GSM8K's tasks against lm-eval 0.4.13 (golden/lmeval.json, make_lmeval_goldens.py): prompts
// of all test rows in every form, stops, and the filters.
#include <gtest/gtest.h>

#include "core/hash.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/math_answer.hpp"

namespace kvsweep::task {
namespace {

void add_turn(Sha256& hash, const std::string& role, const std::string& content) {
  hash.update(role);
  hash.update(std::string(1, '\0'));
  hash.update(content);
  hash.update(std::string(1, '\1'));
}

void add_example(Sha256& hash, const Example& example, TaskForm form) {
  for (const text::ChatMessage& turn : example.turns) add_turn(hash, turn.role, turn.content);
  add_turn(hash, form == TaskForm::text ? "" : "user", example.prompt);
}

TEST(LmEval, PromptsOfAllTestRowsInEveryForm) {
  if (!testing::data_dir()) GTEST_SKIP() << testing::kNoData;
  const Json golden = testing::golden("lmeval.json")["prompts"];
  ASSERT_EQ(golden.size(), 9u);
  for (const Json& one : golden) {
    TaskProtocol protocol = testing::protocol_of(one["task"], "test", one["shots"]);
    protocol.form = task_form_from(one["form"].get<std::string>()).value();
    const auto task = open_task(protocol, {.data_dir = *testing::data_dir()});
    ASSERT_TRUE(task.ok()) << task.error().message;
    ASSERT_EQ((*task)->size(), one["rows"]);
    Sha256 hash;
    for (int64_t i = 0; i < (*task)->size(); ++i) {
      const Example example = (*task)->example(i).value();
      add_example(hash, example, protocol.form);
      if (i == 0) {
        EXPECT_EQ(Json(example.stops), one["stops"]);
      }
    }
    EXPECT_EQ(hash.hex(), one["sha256"]) << one["task"] << " " << one["form"];
  }
}

TEST(LmEval, FiltersFindTheSame) {
  const Json golden = testing::golden("lmeval.json")["filters"];
  ASSERT_EQ(golden.size(), 400u);
  int cot = 0;
  int llama = 0;
  for (const Json& one : golden) {
    const std::string text = one["text"];
    EXPECT_EQ(strict_match(text), one["gsm8k"]) << one;
    EXPECT_EQ(strict_match_cot(text), one["gsm8k_cot"]) << one;
    EXPECT_EQ(strict_match_llama(text), one["gsm8k_cot_llama"]) << one;
    cot += one["gsm8k_cot"] != "[invalid]" ? 1 : 0;
    llama += one["gsm8k_cot_llama"] != "[invalid]" ? 1 : 0;
  }
  EXPECT_GT(cot, 20);
  EXPECT_GT(llama, 20);
}

// Every gold answer, in the words of the exemplars, is right by both filters.
TEST(LmEval, GoldsOfAllTestRowsScoreOne) {
  if (!testing::data_dir()) GTEST_SKIP() << testing::kNoData;
  for (const auto& [name, lead, end] : {std::tuple{"gsm8k_cot", " The answer is ", "."},
                                        {"gsm8k_cot_llama", "The final answer is ", ""}}) {
    const auto task =
        open_task(testing::protocol_of(name, "test", 0), {.data_dir = *testing::data_dir()})
            .value();
    int64_t right = 0;
    int64_t strict = 0;
    for (int64_t i = 0; i < task->size(); ++i) {
      const Example example = task->example(i).value();
      const Score score = task->score(example, lead + example.golds.front() + end);
      right += score.exact_match == 1 ? 1 : 0;
      strict += score.strict_match == 1 ? 1 : 0;
    }
    EXPECT_EQ(right, 1319) << name;
    EXPECT_EQ(strict, 1319) << name;
  }
}

TEST(LmEval, TheDotOfTheCotFilterIsAnyCharacter) {
  EXPECT_EQ(strict_match_cot("The answer is 18."), "18");
  EXPECT_EQ(strict_match_cot("The answer is 18 apples"), "18");
  EXPECT_EQ(strict_match_cot("The answer is 18"), "1");  // the number gives its last digit up
  EXPECT_EQ(strict_match_cot("The answer is 18\n"), "1");
  EXPECT_EQ(strict_match_cot("The answer is 1"), "[invalid]");
  EXPECT_EQ(strict_match_cot("The answer is x. The answer is -1,2."), "-1,2");
}

}  // namespace
}  // namespace kvsweep::task
