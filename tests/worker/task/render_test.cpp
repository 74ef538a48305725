// What examples become for a model: forms, truncation, choices, rolling windows.
#include "worker/task/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/middle_cut.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTemplate =
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}";

class RenderTest : public ::testing::Test {
 protected:
  RenderTest() : tokenizer_(testing::reference_tokenizer()) {
    dir_.write("chat_template.jinja", kTemplate);
    chat_.emplace(text::ChatTemplate::load(dir_.path().string()).value());
    protocol_ = testing::protocol_of("gsm8k", "test", 0);
    protocol_.max_new_tokens = 10;
  }

  ModelText model(int64_t context = 1000) const { return {tokenizer_.get(), &*chat_, context}; }
  std::vector<int32_t> ids(const std::string& text) const {
    return tokenizer_->encode(text, true).value();
  }
  std::string decoded(const std::vector<int32_t>& ids) const {
    return tokenizer_->decode(ids, false).value();
  }
  static Example asked(const std::string& prompt) {
    Example example;
    example.prompt = prompt;
    return example;
  }
  std::vector<int32_t> only_prompt(const Example& example, int64_t context = 1000) const {
    const auto rendered = render(example, protocol_, model(context));
    EXPECT_TRUE(rendered.ok()) << rendered.error().message;
    EXPECT_EQ(rendered->size(), 1u);
    EXPECT_TRUE(rendered->front().reference.empty());
    return rendered->front().prompt;
  }

  test::TempDir dir_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> chat_;
  TaskProtocol protocol_;
};

TEST_F(RenderTest, TextWithItsAnswerPrefix) {
  Example example = asked("Tom has 4 apples.");
  EXPECT_EQ(only_prompt(example), ids("Tom has 4 apples."));
  example.answer_prefix = " He has";
  EXPECT_EQ(only_prompt(example), ids("Tom has 4 apples. He has"));
}

TEST_F(RenderTest, ChatsGoThroughTheTemplate) {
  Example example = asked("How many?");
  example.turns = {{"user", "One?"}, {"assistant", "1"}};
  example.answer_prefix = "It is";
  protocol_.form = TaskForm::multiturn;
  EXPECT_EQ(decoded(only_prompt(example)),
            "[user] One?\n[assistant] 1\n[user] How many?\n[assistant] It is");
  protocol_.form = TaskForm::chat;
  example.turns.clear();
  EXPECT_EQ(decoded(only_prompt(example)), "[user] How many?\n[assistant] It is");
  example.as_text = true;
  EXPECT_EQ(decoded(only_prompt(example)), decoded(ids("How many?It is")));
}

TEST_F(RenderTest, WithoutATemplateThereIsNoChat) {
  protocol_.form = TaskForm::chat;
  const auto rendered = render(asked("How many?"), protocol_, {tokenizer_.get(), nullptr, 1000});
  EXPECT_THAT(rendered.error().message, HasSubstr("no chat template; use form text"));
}

TEST_F(RenderTest, LongPromptsLoseTheirBeginningOrAreRefused) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Tom has " + std::to_string(i) + " apples. ";
  Example example = asked(text);
  const std::vector<int32_t> whole = ids(text);
  const auto count = static_cast<int64_t>(whole.size());
  ASSERT_GT(count, 100);
  // The last of 10 new tokens is never read.
  EXPECT_EQ(only_prompt(example, count + 9), whole);
  EXPECT_THAT(render(example, protocol_, model(count + 8)).error().message,
              HasSubstr("has " + std::to_string(count) + " tokens, but only " +
                        std::to_string(count - 1) + " fit"));
  example.truncation = Truncation::left;
  EXPECT_EQ(only_prompt(example, count + 8), std::vector<int32_t>(whole.begin() + 1, whole.end()));
  protocol_.context = 50;
  EXPECT_EQ(only_prompt(example), std::vector<int32_t>(whole.end() - 50, whole.end()));
  // No context leaves room for more than the model has.
  EXPECT_EQ(only_prompt(example, 40).size(), 31u);
}

TEST_F(RenderTest, TheMiddleIsCutAsLongBenchDoes) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Tom has " + std::to_string(i) + " apples. ";
  Example example = asked(text);
  example.truncation = Truncation::middle;
  protocol_.context = 60;
  EXPECT_EQ(only_prompt(example), ids(cut_middle(text, 60, *tokenizer_).value()));
  // Without a context, prompt and template fit the model together.
  protocol_.context = 0;
  protocol_.form = TaskForm::chat;
  const auto prompt = only_prompt(example, 90);
  EXPECT_LE(prompt.size(), 81u);
  EXPECT_GE(prompt.size(), 75u);
  EXPECT_THAT(decoded(prompt), ::testing::StartsWith("[user] Tom has 0 apples."));
  EXPECT_THAT(decoded(prompt), ::testing::EndsWith("Tom has 39 apples. \n[assistant] "));
}

class RenderChoices : public RenderTest {
 protected:
  RenderChoices() {
    protocol_ = testing::protocol_of("choice/sample", "test", 0);
    example_ = asked("Tom has");
    example_.choices = {"4 apples", "no apples at all"};
  }
  Example example_;
};

TEST_F(RenderChoices, ContinuationsAreWhatIsBehindThePrompt) {
  const auto rendered = render(example_, protocol_, model()).value();
  ASSERT_EQ(rendered.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<int32_t> both = rendered[i].prompt;
    EXPECT_EQ(both, ids("Tom has"));
    both.insert(both.end(), rendered[i].reference.begin(), rendered[i].reference.end());
    EXPECT_EQ(both, ids("Tom has " + example_.choices[i]));
    EXPECT_EQ(rendered[i].unscored, 0);
  }
}

TEST_F(RenderChoices, BlanksAtTheEndBelongToTheContinuation) {
  example_.prompt = "Tom has \n";
  const auto rendered = render(example_, protocol_, model()).value();
  EXPECT_EQ(rendered[0].prompt, ids("Tom has"));
  std::vector<int32_t> both = rendered[0].prompt;
  both.insert(both.end(), rendered[0].reference.begin(), rendered[0].reference.end());
  EXPECT_EQ(both, ids("Tom has \n 4 apples"));
}

TEST_F(RenderChoices, AChatHasNoBlankBeforeTheChoice) {
  protocol_.form = TaskForm::chat;
  const auto rendered = render(example_, protocol_, model()).value();
  std::vector<int32_t> both = rendered[0].prompt;
  both.insert(both.end(), rendered[0].reference.begin(), rendered[0].reference.end());
  EXPECT_EQ(decoded(both), "[user] Tom has\n[assistant] 4 apples");
}

TEST_F(RenderChoices, OnlyThePromptIsCut) {
  example_.prompt = "Tom and Ann and Ben and Amir have";
  example_.truncation = Truncation::left;
  const auto whole = render(example_, protocol_, model()).value();
  const auto after = static_cast<int64_t>(whole[1].reference.size());
  const auto cut = render(example_, protocol_, model(after + 2)).value();
  EXPECT_EQ(cut[1].reference, whole[1].reference);
  // The last token is scored, never read.
  EXPECT_EQ(cut[1].prompt, std::vector<int32_t>(whole[1].prompt.end() - 3, whole[1].prompt.end()));
  example_.truncation = Truncation::none;
  EXPECT_FALSE(render(example_, protocol_, model(after + 2)).ok());
}

TEST_F(RenderTest, RollingWindowsScoreEveryTokenOnce) {
  protocol_ = testing::protocol_of("word_perplexity/sample", "test", 0);
  std::string text = "Tom has 4 apples and buys 3 more. The farmer has 12 eggs and sells 5.";
  const std::vector<int32_t> whole = tokenizer_->encode(text, false).value();
  for (const int length : {1, 7, 8, 10, 1000}) {
    protocol_.length = length;
    const auto windows = render(asked(text), protocol_, model(500)).value();
    std::vector<int32_t> scored;
    for (const Sequence& window : windows) {
      ASSERT_EQ(window.prompt.size(), 1u);
      const bool first = scored.empty();
      EXPECT_EQ(window.reference.size(),
                std::min<size_t>(whole.size(), static_cast<size_t>(length)));
      EXPECT_EQ(window.prompt.front(),
                first ? *tokenizer_->text_start()
                      : whole[scored.size() - static_cast<size_t>(window.unscored) - 1]);
      scored.insert(scored.end(), window.reference.begin() + window.unscored,
                    window.reference.end());
    }
    EXPECT_EQ(scored, whole) << length;
  }
}

}  // namespace
}  // namespace kvsweep::task
