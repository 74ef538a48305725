#include "worker/task/corpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include "core/json.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/math_answer.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;
using testing::protocol_of;

std::string text_of(const CorpusOptions& options) {
  std::ostringstream out;
  const Status written = write_corpus(options, out);
  EXPECT_TRUE(written.ok());
  return out.str();
}

std::vector<Json> lines_of(const CorpusOptions& options) {
  std::istringstream text(text_of(options));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

// What the reference model's trainer reads (models/reference/train.py: kinds, seeds, counts and
// lengths are those of `prepare`), against every example of the splits that measure it, by content.
class TrainingTexts : public ::testing::TestWithParam<CorpusOptions> {};

INSTANTIATE_TEST_SUITE_P(OfTheReferenceModel, TrainingTexts,
                         ::testing::Values(CorpusOptions{"word_problems", 20, 300'000, 256},
                                           CorpusOptions{"recall", 20, 20'000, 1024}),
                         [](const auto& info) { return info.param.kind; });

TEST_P(TrainingTexts, NeverMeetASearchOrReportExample) {
  const bool recall = GetParam().kind == "recall";
  std::unordered_set<std::string> measured;
  for (const char* split : {"search", "report"}) {
    for (int64_t seed : {0, 1, 20}) {
      for (int length : recall ? std::vector<int>{34, 256, 512, 1024} : std::vector<int>{0}) {
        TaskProtocol protocol = protocol_of(GetParam().kind, split, 0, seed);
        protocol.length = length;
        const auto task = open_task(protocol, {}).value();
        for (int64_t i = 0; i < task->size(); ++i) {
          const std::string prompt = task->example(i).value().prompt;
          const size_t begin = std::string("Question: ").size();
          const size_t end = prompt.find(recall ? " What is" : "\nAnswer:");
          measured.insert(prompt.substr(begin, end - begin));
        }
      }
    }
  }
  EXPECT_GT(measured.size(), 11'000u);
  std::istringstream text(text_of(GetParam()));
  int64_t lines = 0;
  for (std::string line; std::getline(text, line); ++lines) {
    const Json problem = Json::parse(line);
    const auto content = problem.at(recall ? "facts" : "question").get<std::string>();
    ASSERT_FALSE(measured.contains(content)) << content;
  }
  EXPECT_EQ(lines, GetParam().count);
}

TEST(Corpus, EveryKindWritesAnswersThatScore) {
  for (const std::string& kind : corpus_kinds()) {
    const auto lines = lines_of({kind, 5, 200, 128});
    ASSERT_EQ(lines.size(), 200u);
    for (const Json& line : lines) {
      if (kind == "recall") {
        ASSERT_EQ(line["questions"].size(), line["answers"].size());
        EXPECT_GE(line["answers"].size(), 2u);
        EXPECT_LE(line["answers"].size(), 10u);
        continue;
      }
      const auto answer = line["answer"].get<std::string>();
      EXPECT_EQ(score_math(answer, " " + answer).strict_match, 1);
    }
  }
}

TEST(Corpus, SeedsGiveOtherTextsAndTheSameSeedTheSame) {
  for (const std::string& kind : corpus_kinds()) {
    EXPECT_EQ(text_of({kind, 1, 20, 128}), text_of({kind, 1, 20, 128}));
    EXPECT_NE(text_of({kind, 1, 20, 128}), text_of({kind, 2, 20, 128}));
  }
}

TEST(Corpus, ExamplesAreWrittenAsTheyAreAsked) {
  const auto task = open_task(protocol_of("word_problems", "report", 2), {}).value();
  std::ostringstream out;
  ASSERT_TRUE(write_examples(*task, 3, out).ok());
  std::istringstream text(out.str());
  int64_t index = 0;
  for (std::string line; std::getline(text, line); ++index) {
    const Json json = Json::parse(line);
    const Example example = task->example(index).value();
    EXPECT_EQ(json["index"], index);
    EXPECT_EQ(json["prompt"], example.prompt);
    EXPECT_EQ(json["golds"], Json(example.golds));
    EXPECT_EQ(json["hash"], example.hash);
    EXPECT_EQ(json["stops"].get<std::vector<std::string>>(), example.stops);
  }
  EXPECT_EQ(index, 3);
  out.str("");
  ASSERT_TRUE(write_examples(*task, 1 << 20, out).ok());
  const std::string all = out.str();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), task->size());
}

TEST(Corpus, ErrorsSayWhatIsAllowed) {
  std::ostringstream out;
  EXPECT_THAT(write_corpus({"poems", 1, 1, 256}, out).error().message,
              HasSubstr("\"poems\"; allowed are drills, recall, word_problems"));
  EXPECT_THAT(write_corpus({"recall", 1, 1, 9}, out).error().message, HasSubstr("34 to 1078"));
  EXPECT_EQ(out.str(), "");
  out.setstate(std::ios::failbit);
  EXPECT_EQ(write_corpus({"drills", 1, 1, 256}, out).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace kvsweep::task
