#include "worker/task/longbench_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/json.hpp"
#include "core/longbench.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;

std::string line(const std::string& prediction, const Json& answers, int64_t length) {
  return Json{{"pred", prediction},
              {"answers", answers},
              {"all_classes", {"Date", "Food"}},
              {"length", length}}
             .dump() +
         "\n";
}

// Scores by hand: qasper 1, 0, 2/3 -> 55.56; trec looks at the first line only -> 1/1; lcc 1.
TEST(LongBenchReport, SetsBucketsAndAverages) {
  const test::TempDir dir;
  std::ofstream(dir.path() / "qasper.jsonl")
      << line("yes", {"no", "Yes."}, 3999) << line("", {"x"}, 4000) << line("b c", {"a b"}, 9000);
  std::ofstream(dir.path() / "trec.jsonl") << line("\nFood\nDate", {"Food"}, 1);
  std::ofstream(dir.path() / "lcc.jsonl") << line("x = 1", {"x = 1"}, 1);
  std::ofstream(dir.path() / "repobench-p.jsonl") << line("x", {"y"}, 1);
  std::ostringstream out;
  const Status status = score_longbench({dir.path().string(), ""}, out);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_THAT(out.str(),
              HasSubstr("qasper                     3   55.56  100.00    0.00   66.67\n"));
  EXPECT_THAT(out.str(),
              HasSubstr("trec                       1  100.00  100.00       -       -\n"));
  EXPECT_THAT(out.str(), HasSubstr("lcc and repobench-p: difflib's ratio"));
  EXPECT_THAT(out.str(), HasSubstr("code completion, English               50.00  over lcc, rep"));
  EXPECT_THAT(out.str(),
              HasSubstr("single-document QA, English                -  not scored: nar"));
}

TEST(LongBenchReport, WhatIsMissingIsSaid) {
  const test::TempDir dir;
  std::ostringstream out;
  const std::string folder = dir.path().string();
  EXPECT_EQ(score_longbench({folder, folder}, out).error().code, ErrorCode::not_found);
  std::ofstream(dir.path() / "vcsum.jsonl") << line("a", {"b"}, 1);
  EXPECT_THAT(score_longbench({folder, folder}, out).error().message, HasSubstr("jieba/dict.txt"));
  std::ofstream(dir.path() / "vcsum.jsonl") << "{\"pred\": \"a\"}\n";
  EXPECT_THAT(score_longbench({folder, folder}, out).error().message,
              HasSubstr("vcsum.jsonl:1: \"answers\" is missing"));
}

// LongBench's table: the English and Chinese category means of GPT-3.5-Turbo-16k give its overall
// means; the two code sets count in both languages.
TEST(LongBenchAverages, AreThoseOfThePublishedTable) {
  std::map<std::string, double, std::less<>> scores;
  const std::map<LongBenchCategory, std::pair<double, double>> published = {
      {LongBenchCategory::single_doc, {39.8, 61.2}},
      {LongBenchCategory::multi_doc, {38.7, 28.7}},
      {LongBenchCategory::summarization, {26.5, 16.0}},
      {LongBenchCategory::few_shot, {67.1, 29.2}},
      {LongBenchCategory::synthetic, {37.8, 77.5}},
      {LongBenchCategory::code, {54.1, 54.1}}};
  for (const LongBenchSet& set : longbench_sets()) {
    const auto& [english, chinese] = published.at(set.category);
    scores[std::string(set.name)] = set.language == LongBenchLanguage::zh ? chinese : english;
  }
  std::map<std::string, LongBenchAverage> by_name;
  for (const LongBenchAverage& average : longbench_averages(scores)) {
    by_name[average.name] = average;
  }
  ASSERT_EQ(by_name.size(), 15u);
  EXPECT_NEAR(*by_name["all six categories, English"].score, 44.0, 0.05);
  EXPECT_NEAR(*by_name["all six categories, Chinese"].score, 44.5, 0.051);
  const std::vector<std::string>& sixteen = by_name["16 English and code sets"].sets;
  EXPECT_EQ(sixteen.size(), 16u);
  EXPECT_EQ(std::count(sixteen.begin(), sixteen.end(), "dureader"), 0);
  scores.erase("qmsum");
  for (const LongBenchAverage& average : longbench_averages(scores)) {
    const bool lacks = average.name == "summarization, English" ||
                       average.name == "all six categories, English" ||
                       average.name == "16 English and code sets";
    EXPECT_EQ(average.score.has_value(), !lacks) << average.name;
  }
}

}  // namespace
}  // namespace kvsweep::task
