#include "worker/task/problem_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace kvsweep::task {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kGood = R"({"question": "q", "answer": "a", "extra": 1})";

class ProblemFile : public ::testing::Test {
 protected:
  Result<Problems> read(const std::string& text) {
    return read_problems(dir_.write("data.jsonl", text));
  }
  // The message must name file and line.
  std::string error_of(const std::string& text, int line) {
    const Result<Problems> result = read(text);
    EXPECT_FALSE(result.ok()) << text;
    if (result.ok()) return "";
    EXPECT_EQ(result.error().code, ErrorCode::bad_input);
    EXPECT_THAT(result.error().message,
                HasSubstr(dir_.file("data.jsonl") + ":" + std::to_string(line) + ": "));
    return result.error().message;
  }

  test::TempDir dir_;
};

TEST_F(ProblemFile, ToleratesMarkCarriageReturnsBlankLinesAndAMissingFinalNewline) {
  const auto problems = read("\xef\xbb\xbf" + kGood + "\r\n\r\n  \n" +
                             R"({"answer":"\u00e9\n#### 2","question":""})");
  ASSERT_TRUE(problems.ok()) << problems.error().message;
  ASSERT_EQ(problems->size(), 2u);
  EXPECT_EQ((*problems)[0].question, "q");
  EXPECT_EQ((*problems)[1].answer, "\xc3\xa9\n#### 2");
}

TEST_F(ProblemFile, BrokenLinesAreNamed) {
  EXPECT_THAT(error_of(kGood + "\n{\"question\": \"q\", \"ans", 2), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(kGood + "\n\n" + kGood + " {}\n", 3), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("[1, 2]\n", 1), HasSubstr("must be a JSON object, not array"));
  EXPECT_THAT(error_of(R"({"question": "q"})", 1), HasSubstr("\"answer\" is missing"));
  EXPECT_THAT(error_of(R"({"answer": "a"})", 1), HasSubstr("\"question\" is missing"));
  EXPECT_THAT(error_of(R"({"question": 5, "answer": "a"})", 1),
              HasSubstr("\"question\" must be a string, not number"));
  EXPECT_THAT(error_of("{\"question\": \"\xff\xfe\", \"answer\": \"a\"}", 1),
              AllOf(HasSubstr("not valid JSON at byte 15"), HasSubstr("UTF-8")));
  EXPECT_THAT(error_of(kGood + "\n" + std::string("\0\0\0", 3), 2), HasSubstr("not valid JSON"));
}

TEST_F(ProblemFile, DeepNestingIsAnErrorNotACrash) {
  error_of(std::string(1'000'000, '['), 1);
  error_of(R"({"question": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}", 1);
}

TEST_F(ProblemFile, EmptyAndAbsentFiles) {
  for (const char* text : {"", "\n\r\n", "\xef\xbb\xbf"}) {
    const auto result = read(text);
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message, HasSubstr("data.jsonl holds no problem"));
  }
  EXPECT_EQ(read_problems(dir_.file("absent.jsonl")).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace kvsweep::task
