// What the generated tasks promise of their lengths, in the tokenizer of the reference model.
#include <gtest/gtest.h>

#include "core/task_protocol.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/recall_facts.hpp"
#include "worker/task/task.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::task {
namespace {

text::Tokenizer tokenizer() {
  return text::Tokenizer::load(KVSWEEP_SOURCE_DIR "/models/reference").value();
}

TEST(ReferencePrompts, RecallFillsItsLength) {
  const text::Tokenizer reference = tokenizer();
  for (int length : {34, 64, 255, 256, 512, 1024, 1078}) {
    TaskProtocol protocol = testing::protocol_of("recall", "report", 0);
    protocol.length = length;
    const auto task = open_task(protocol, {}).value();
    for (int64_t i = 0; i < 20; ++i) {
      const auto tokens = reference.encode(task->example(i).value().prompt, true).value();
      EXPECT_LE(static_cast<int>(tokens.size()), length);
      EXPECT_GT(static_cast<int>(tokens.size()), length - kTokensPerFact);
    }
  }
}

// Counting the line break that ends an answer, so that the stop is seen.
void expect_answers_fit(const std::string& name) {
  const text::Tokenizer reference = tokenizer();
  const TaskProtocol protocol = testing::protocol_of(name, "report", 0);
  const auto task = open_task(protocol, {}).value();
  for (int64_t i = 0; i < task->size(); ++i) {
    const std::string answer = " " + task->example(i).value().golds.front() + "\n";
    const auto tokens = reference.encode(answer, false).value();
    EXPECT_LE(static_cast<int>(tokens.size()), protocol.max_new_tokens) << name << " " << i;
  }
}

TEST(ReferencePrompts, AnswersFitTheNewTokensOfTheCatalog) {
  expect_answers_fit("word_problems");
  expect_answers_fit("recall");
}

}  // namespace
}  // namespace kvsweep::task
