#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <set>

#include "core/hash.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/math_answer.hpp"

namespace kvsweep::task {
namespace {

using testing::protocol_of;

std::unique_ptr<Task> open(const std::string& split, int shots, int64_t seed) {
  return open_task(protocol_of("word_problems", split, shots, seed), {}).value();
}

std::string question_of(const Example& zero_shot) {
  const std::string head = "Question: ";
  const std::string tail = "\nAnswer:";
  return zero_shot.prompt.substr(head.size(), zero_shot.prompt.size() - head.size() - tail.size());
}

std::multiset<int> numbers_in(const std::string& text) {
  std::multiset<int> numbers;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(text[i]))) continue;
    size_t digits = 0;
    numbers.insert(std::stoi(text.substr(i), &digits));
    i += digits;
  }
  return numbers;
}

// In doubles, so that a division with a remainder cannot equal its claimed result.
double calculated(double left, const std::string& op, double right) {
  if (op == "+") return left + right;
  if (op == "-") return left - right;
  return op == "*" ? left * right : left / right;
}

// Re-reads an answer: each annotation must be true, its result must follow it, its terms must stand
// in the question or be results of earlier steps, every number of the question must be used (the
// stories state nothing superfluous), and the last result must be the final answer. Returns the
// number of steps.
int check_answer(const std::string& question, const std::string& answer) {
  const std::multiset<int> stated = numbers_in(question);
  std::set<int> results;
  std::set<int> used;
  int steps = 0;
  int last = -1;
  for (size_t at = answer.find("<<"); at != std::string::npos; at = answer.find("<<", at + 2)) {
    int left = 0;
    int right = 0;
    int claimed = 0;
    int written = 0;
    char op[2] = {};
    EXPECT_EQ(std::sscanf(answer.c_str() + at, "<<%d%1[-+*/]%d=%d>>%d", &left, op, &right, &claimed,
                          &written),
              5)
        << answer;
    const std::string terms = std::to_string(left) + op + std::to_string(right);
    const std::string before = answer.substr(0, at);  // "... 3*4 = " or "... 3*4 = $"
    EXPECT_TRUE(before.ends_with(" " + terms + " = ") || before.ends_with(" " + terms + " = $"));
    EXPECT_EQ(calculated(left, op, right), claimed) << terms;
    EXPECT_EQ(written, claimed);
    for (int term : {left, right}) {
      EXPECT_TRUE(stated.contains(term) || results.contains(term)) << term << " comes from nowhere";
      used.insert(term);
    }
    results.insert(claimed);
    last = claimed;
    ++steps;
  }
  EXPECT_EQ(static_cast<int>(std::count(answer.begin(), answer.end(), '=')), 2 * steps);
  for (int number : stated) EXPECT_TRUE(used.contains(number)) << number << " is not used";
  EXPECT_TRUE(answer.ends_with("\n#### " + std::to_string(last))) << answer;
  return steps;
}

TEST(WordProblems, EveryAnswerFollowsFromItsQuestion) {
  std::map<int, int> by_steps;
  size_t longest = 0;
  for (const char* split : {"search", "report", "train"}) {
    const auto task = open(split, 0, 3);
    ASSERT_EQ(task->size(), 2000);
    for (int64_t i = 0; i < task->size(); ++i) {
      const Example example = task->example(i).value();
      const std::string question = question_of(example);
      ++by_steps[check_answer(question, example.golds.front())];
      longest = std::max(longest, example.golds.front().size());
      EXPECT_TRUE(question.ends_with("?"));
      if (HasFailure()) FAIL() << question << "\n" << example.golds.front();
    }
  }
  EXPECT_EQ(by_steps.begin()->first, 1);
  EXPECT_EQ(by_steps.rbegin()->first, 4);
  for (const auto& [steps, count] : by_steps) EXPECT_GT(count, 200) << steps << " steps";
  EXPECT_LT(longest, 260u);  // in tokens: reference_prompts_test
}

TEST(WordProblems, SplitsAreDisjointAcrossSeedsAndWithoutRepetition) {
  std::map<std::string, std::string> home;  // question -> split
  for (int64_t seed : {0, 1, 77}) {
    for (const char* split : {"search", "report", "train"}) {
      const auto task = open(split, 0, seed);
      std::set<std::string> questions;
      for (int64_t i = 0; i < task->size(); ++i) {
        const std::string question = question_of(task->example(i).value());
        EXPECT_TRUE(questions.insert(question).second) << question;
        const auto [entry, fresh] = home.emplace(question, split);
        EXPECT_EQ(entry->second, split) << question;
      }
    }
  }
  EXPECT_GT(home.size(), 17000u);  // of 18,000: seeds give other problems
}

// The prompts of seed 1 by digest: another machine, compiler or run must give the same bytes. When
// a template changes on purpose, raise the version in core/catalog/tasks.def and this digest with
// it.
TEST(WordProblems, TheSameOnEveryMachine) {
  const auto task = open("search", 2, 1);
  Sha256 digest;
  for (int64_t i = 0; i < task->size(); ++i) digest.update(task->example(i).value().hash);
  EXPECT_EQ(digest.hex(), "c56f88ad3d24f2b2bf2e74aae5787832444cd14a74b884cef830975a9237c78f");
}

TEST(WordProblems, ShotsComeFromTrainAndAreNeverTheExampleItself) {
  std::set<std::string> train;
  const auto train_task = open("train", 0, 5);
  for (int64_t i = 0; i < train_task->size(); ++i) {
    const Example example = train_task->example(i).value();
    train.insert(example.prompt + " " + example.golds.front());
  }
  for (const char* split : {"search", "train"}) {
    const auto task = open(split, 3, 5);
    std::set<std::string> met;
    for (int64_t i = 0; i < 300; ++i) {
      std::string rest = task->example(i).value().prompt;
      const std::string own = rest.substr(rest.rfind("Question: "));
      std::set<std::string> shots;
      for (int shot = 0; shot < 3; ++shot) {
        const size_t end = rest.find("\n\n");
        ASSERT_NE(end, std::string::npos);
        EXPECT_TRUE(train.contains(rest.substr(0, end)));
        EXPECT_FALSE(rest.starts_with(own));
        shots.insert(rest.substr(0, end));
        rest.erase(0, end + 2);
      }
      EXPECT_EQ(rest, own);
      EXPECT_EQ(shots.size(), 3u);
      met.insert(shots.begin(), shots.end());
    }
    EXPECT_GT(met.size(), 600u);  // drawn anew for every example: 900 draws of 2,000
  }
}

}  // namespace
}  // namespace kvsweep::task
