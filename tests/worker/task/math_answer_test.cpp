#include "worker/task/math_answer.hpp"

#include <gtest/gtest.h>

#include "core/hash.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/python_random.hpp"

namespace kvsweep::task {
namespace {

struct Filtered {
  std::string cut, strict, flexible, clean;
};

Filtered filtered(const std::string& text) {
  return {cut_at_stops(text, math_stops()), strict_match(text), flexible_extract(text),
          cleaned_answer(text)};
}

// Expected by hand from the expressions.
TEST(Filters, WorkedExamples) {
  EXPECT_EQ(strict_match("so #### -1,234.5 and #### 6"), "-1,234.5");
  EXPECT_EQ(strict_match("#### x #### - #### 7"), "7");  // neither of the first two is followed
  EXPECT_EQ(strict_match("####7"), "[invalid]");
  EXPECT_EQ(strict_match("##### 8"), "8");
  EXPECT_EQ(strict_match("#### --3"), "[invalid]");
  EXPECT_EQ(strict_match(""), "[invalid]");
  EXPECT_EQ(flexible_extract("from 3 to $18."), "$18.");
  EXPECT_EQ(flexible_extract("it is 5"), "5");
  EXPECT_EQ(flexible_extract("-5 or --6"), "-6");
  EXPECT_EQ(flexible_extract("I think 12 ..."), "...");  // odd, but so it is there
  EXPECT_EQ(flexible_extract("costs $ or . or -"), "[invalid]");
  EXPECT_EQ(cleaned_answer("So $1,000 #### 10."), "10");
  EXPECT_EQ(cleaned_answer("#### 1 #### 2 "), "2 ");
  EXPECT_EQ(cleaned_answer("A.\n"), "a\n");
  EXPECT_EQ(cleaned_answer("5.."), "5.");
}

// golden/filters.json: lm-eval's expressions run by Python's re.
TEST(Filters, EqualPythonsReOnTheShownStrings) {
  const Json golden = testing::golden("filters.json");
  ASSERT_GE(golden["rows"].size(), 200u);
  for (const Json& row : golden["rows"]) {
    const Filtered result = filtered(row["text"]);
    EXPECT_EQ(result.cut, row["cut"]) << row["text"];
    EXPECT_EQ(result.strict, row["strict"]) << row["text"];
    EXPECT_EQ(result.flexible, row["flexible"]) << row["text"];
    EXPECT_EQ(result.clean, row["clean"]) << row["text"];
  }
}

// The same 10,000 strings, drawn here as there, compared through one digest of all results.
TEST(Filters, EqualPythonsReOnTenThousandStrings) {
  const Json golden = testing::golden("filters.json");
  const auto pieces = golden["pieces"].get<std::vector<std::string>>();
  ASSERT_EQ(pieces.size(), 32u);
  ASSERT_EQ(golden["count"], 10000);
  PythonRandom random(golden["seed"]);
  Sha256 digest;
  for (int i = 0; i < 10000; ++i) {
    std::string text;
    for (uint32_t left = random.getrandbits(4); left > 0; --left) {
      text += pieces[random.getrandbits(5)];
    }
    const Filtered result = filtered(text);
    for (const std::string& part :
         {text, result.cut, result.strict, result.flexible, result.clean}) {
      digest.update(part + std::string(1, '\0'));
    }
  }
  EXPECT_EQ(digest.hex(), golden["sha256"]);
}

// std::regex would overflow the stack here; ten million characters take well under a second.
TEST(Filters, LongOutputsAreLinear) {
  const std::string dashes(10'000'000, '-');
  EXPECT_EQ(flexible_extract(dashes), "[invalid]");
  EXPECT_EQ(strict_match(std::string(10'000'000, '#')), "[invalid]");
  const std::string digits(10'000'000, '7');
  EXPECT_EQ(flexible_extract(dashes + digits).size(), digits.size() + 1);
}

TEST(CutAtStops, EarliestStopWins) {
  EXPECT_EQ(cut_at_stops("a</s>b Question: c", math_stops()), "a");
  EXPECT_EQ(cut_at_stops("a Question: b</s>", math_stops()), "a ");
  EXPECT_EQ(cut_at_stops("<|im_end|>", math_stops()), "");
  EXPECT_EQ(cut_at_stops("Question</s", math_stops()), "Question</s");
  EXPECT_EQ(cut_at_stops("abc", {""}), "abc");
  EXPECT_EQ(cut_at_stops("abc", {}), "abc");
}

TEST(FewShotPrompt, TextForm) {
  const Problem one{"1+1?", "2\n#### 2"};
  const Problem two{"2+2?", "4\n#### 4"};
  const std::vector<const Problem*> shots = {&one, &two};
  EXPECT_EQ(few_shot_prompt(shots, "3+3?"),
            "Question: 1+1?\nAnswer: 2\n#### 2\n\nQuestion: 2+2?\nAnswer: 4\n#### 4\n\n"
            "Question: 3+3?\nAnswer:");
  EXPECT_EQ(few_shot_prompt({}, "3+3?"), "Question: 3+3?\nAnswer:");
}

TEST(ScoreMath, BothFiltersAndTheAnswer) {
  const std::string gold = "3 * 600 = <<3*600=1800>>1800\n#### 1,800";
  const auto score = [&](const std::string& output) { return score_math(gold, output); };
  EXPECT_EQ(score(" so #### 1800").exact_match, 1);
  EXPECT_EQ(score(" so #### 1800").strict_match, 1);
  EXPECT_EQ(score(" it is $1,800.").exact_match, 1);
  EXPECT_EQ(score(" it is $1,800.").strict_match, 0);
  EXPECT_EQ(score(" it is $1,800.").answer, "1800");  // cleaned, so that agreement compares answers
  // The last number counts for flexible, the first mark for strict.
  EXPECT_EQ(score("#### 1800 because 5").exact_match, 0);
  EXPECT_EQ(score("#### 1800 because 5").strict_match, 1);
  // Only text before the first stop counts.
  EXPECT_EQ(score("#### 1800\n\nQuestion: 7").exact_match, 1);
  EXPECT_EQ(score("I do not know").answer, "[invalid]");
  EXPECT_EQ(score("").exact_match, 0);
}

}  // namespace
}  // namespace kvsweep::task
