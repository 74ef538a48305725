#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/recall_facts.hpp"
#include "worker/task/split_home.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;
using testing::protocol_of;

TaskProtocol recall(const std::string& split, int length, int shots = 0, int64_t seed = 0) {
  TaskProtocol protocol = protocol_of("recall", split, shots, seed);
  protocol.length = length;
  return protocol;
}

// Every "{head}X{middle}Y{tail}" of `text`, in order, as pairs X, Y.
std::vector<std::pair<std::string, std::string>> statements(const std::string& text,
                                                            const std::string& head,
                                                            const std::string& middle,
                                                            const std::string& tail) {
  std::vector<std::pair<std::string, std::string>> found;
  for (size_t at = text.find(head); at != std::string::npos; at = text.find(head, at + 1)) {
    const size_t key = at + head.size();
    const size_t gap = text.find(middle, key);
    if (gap == std::string::npos) break;
    const size_t value = gap + middle.size();
    found.emplace_back(text.substr(key, gap - key),
                       text.substr(value, text.find(tail, value) - value));
  }
  return found;
}

std::map<std::string, std::string> facts_of(const std::string& prompt) {
  const std::string context = prompt.substr(0, prompt.find(" What is"));
  std::map<std::string, std::string> facts;
  for (const auto& [key, code] : statements(context, "The code of ", " is ", ".")) {
    EXPECT_EQ(code.size(), 4u);
    EXPECT_TRUE(facts.emplace(key, code).second) << "stated twice: " << key;
  }
  return facts;
}

// The key that the last question asks for.
std::string asked(const std::string& prompt) {
  const std::string head = "What is the code of ";
  const size_t begin = prompt.rfind(head) + head.size();
  return prompt.substr(begin, prompt.find('?', begin) - begin);
}

TEST(Recall, EveryAnswerStandsInThePrompt) {
  for (int length : {34, 64, 256, 512, 1078}) {
    const auto task = open_task(recall("report", length, 0, 3), {}).value();
    ASSERT_EQ(task->size(), 2000);
    std::set<int> depths;
    for (int64_t i = 0; i < 200; ++i) {
      const Example example = task->example(i).value();
      const auto facts = facts_of(example.prompt);
      ASSERT_EQ(static_cast<int>(facts.size()), facts_in(length));
      const std::string key = asked(example.prompt);
      const std::string& code = facts.at(key);
      EXPECT_EQ(example.golds.front(), "The code of " + key + " is " + code + ".\n#### " + code);
      EXPECT_TRUE(example.prompt.ends_with("?\nAnswer:"));
      std::set<std::string> codes;
      for (const auto& [name, value] : facts) codes.insert(value);
      EXPECT_EQ(codes.size(), facts.size());  // a wrong key gives a wrong answer
      depths.insert(static_cast<int>(example.prompt.find(" " + key + " is")));
    }
    EXPECT_GT(depths.size(), std::min<size_t>(static_cast<size_t>(facts_in(length)), 20) - 1);
  }
}

TEST(Recall, ShotsAskForOtherFactsOfTheSameContext) {
  const auto task = open_task(recall("search", 128, 4), {}).value();
  for (int64_t i = 0; i < 100; ++i) {
    const Example example = task->example(i).value();
    const auto facts = facts_of(example.prompt);
    std::set<std::string> keys;
    const auto questions =
        statements(example.prompt, "What is the code of ", "?\nAnswer: ", "\n\n");
    for (const auto& [key, answer] : questions) {
      const std::string& code = facts.at(key);
      EXPECT_EQ(answer, "The code of " + key + " is " + code + ".\n#### " + code);
      keys.insert(key);
    }
    EXPECT_EQ(keys.size(), 4u);
    EXPECT_FALSE(keys.contains(asked(example.prompt)));
  }
}

TEST(Recall, TheFactsDecideTheSplit) {
  const std::vector<std::string> splits = {"search", "report", "train"};
  for (size_t home = 0; home < splits.size(); ++home) {
    for (int64_t seed : {0, 9}) {
      const auto task = open_task(recall(splits[home], 64, 0, seed), {}).value();
      for (int64_t i = 0; i < 300; ++i) {
        const std::string prompt = task->example(i).value().prompt;
        const size_t begin = std::string("Question: ").size();
        const std::string facts = prompt.substr(begin, prompt.find(" What is") - begin);
        EXPECT_EQ(home_of(facts, splits.size()), home);
      }
    }
  }
}

TEST(Recall, RefusesLengthsAndShotsThatCannotBe) {
  const auto message = [](const TaskProtocol& protocol) {
    const auto opened = open_task(protocol, {});
    return opened.ok() ? "" : opened.error().message;
  };
  EXPECT_EQ(message(recall("search", 34)), "");
  EXPECT_EQ(message(recall("search", 1078)), "");
  EXPECT_THAT(message(recall("search", 33)), HasSubstr("33 tokens; allowed are 34 to 1078"));
  EXPECT_THAT(message(recall("search", 1079)), HasSubstr("1079 tokens; allowed are 34 to 1078"));
  EXPECT_THAT(message(recall("search", 0)), HasSubstr("length is 0"));
  EXPECT_THAT(message(recall("search", 64, 4)), HasSubstr("hold only 4 facts"));
  EXPECT_EQ(message(recall("search", 64, 3)), "");
  TaskProtocol other = protocol_of("word_problems", "search", 0);
  other.length = 100;
  EXPECT_THAT(message(other), HasSubstr("length is 100"));
}

// As for word_problems: the same bytes on every machine.
TEST(Recall, TheSameOnEveryMachine) {
  const auto task = open_task(recall("search", 256, 2, 1), {}).value();
  Sha256 digest;
  for (int64_t i = 0; i < task->size(); ++i) digest.update(task->example(i).value().hash);
  EXPECT_EQ(digest.hex(), "feba296c5952498a75b8668a2c391a7c9359fdc1f8b48168f81d678e8087d00e");
}

}  // namespace
}  // namespace kvsweep::task
