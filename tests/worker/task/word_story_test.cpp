#include "worker/task/word_story.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace kvsweep::task {
namespace {

TEST(Story, WritesTheLinesAndTheFinalAnswer) {
  Story story;
  story.say("Three bags hold 4 nuts each.");
  const int nuts = story.step(3, '*', 4, {"They hold", "nuts"});
  story.say("Two are eaten.");
  EXPECT_EQ(story.step(nuts, '-', 2, {"Left are", "nuts"}), 10);
  EXPECT_EQ(story.step(10, '/', 5, {"Each costs", "", "$"}), 2);
  const Problem problem = story.finish();
  EXPECT_EQ(problem.question, "Three bags hold 4 nuts each. Two are eaten.");
  EXPECT_EQ(problem.answer,
            "They hold 3*4 = <<3*4=12>>12 nuts.\nLeft are 12-2 = <<12-2=10>>10 nuts.\n"
            "Each costs 10/5 = $<<10/5=2>>2.\n#### 2");
  EXPECT_EQ(story.steps(), 3);
}

TEST(Story, RefusesWhatCannotBeSaidInPositiveIntegers) {
  Story story;
  EXPECT_THROW(story.step(3, '-', 3, {}), std::logic_error);
  EXPECT_THROW(story.step(7, '/', 2, {}), std::logic_error);
  EXPECT_THROW(story.step(7, '/', 0, {}), std::logic_error);
  EXPECT_THROW(story.step(7, '^', 2, {}), std::logic_error);
  EXPECT_THROW((void)Story().finish(), std::logic_error);
}

}  // namespace
}  // namespace kvsweep::task
