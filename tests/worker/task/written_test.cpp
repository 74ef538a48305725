// Tasks from YAML files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"
#include "tests/worker/task/task_testing.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;

class WrittenTask : public ::testing::Test {
 protected:
  WrittenTask() {
    dir_.write("rows.jsonl",
               R"({"city": "Zürich", "country": "Switzerland", "names": ["Swiss", "CH"],)"
               R"( "options": ["north", "south"], "right": 1, "code": 41})"
               "\n"
               R"({"city": "Rome", "country": "Italy", "names": ["IT"],)"
               R"( "options": ["a", "b", "c"], "right": 0, "code": 39})"
               "\n");
  }
  Result<std::unique_ptr<Task>> open(const std::string& kind, const std::string& yaml) const {
    dir_.write("task.yaml", yaml);
    return open_task(testing::protocol_of(kind + "/task.yaml", "test", 0),
                     {.data_dir = dir_.path().string()});
  }
  std::string message(const std::string& kind, const std::string& yaml) const {
    const auto opened = open(kind, yaml);
    return opened.ok() ? "" : opened.error().message;
  }
  test::TempDir dir_;
};

TEST_F(WrittenTask, PromptsAreTemplatesOverTheRow) {
  const auto task = open("generate",
                         "data: rows.jsonl\n"
                         "prompt: \"{% if code > 40 %}Far: {% endif %}Where is {{ city }}?\"\n"
                         "gold: \"{{ country }}\"\n"
                         "stops: [\"\\n\\n\", \"Where\"]\n")
                        .value();
  ASSERT_EQ(task->size(), 2);
  const Example first = task->example(0).value();
  EXPECT_EQ(first.prompt, "Far: Where is Zürich?");
  EXPECT_EQ(task->example(1).value().prompt, "Where is Rome?");
  EXPECT_EQ(first.golds, std::vector<std::string>{"Switzerland"});
  EXPECT_EQ(first.stops, (std::vector<std::string>{"\n\n", "Where"}));
  EXPECT_EQ(task->score(first, "Switzerland").exact_match, 1);
  EXPECT_EQ(task->score(first, "Switzerland Where").exact_match, 0);  // the blank stays
  EXPECT_EQ(task->score(first, " switzerland").exact_match, 0);
}

TEST_F(WrittenTask, FiltersAndMetrics) {
  const std::string rows = "data: rows.jsonl\nprompt: \"{{ city }}\"\n";
  const auto score = [&](const std::string& more, const std::string& output) {
    const auto task = open("generate", rows + more).value();
    return task->score(task->example(0).value(), output);
  };
  const std::string country = "gold: \"{{ country }}\"\n";
  EXPECT_EQ(score(country + "filters: [first_line, lower, no_punctuation, strip]\n",
                  "\n\n Switzerland! \nnot Italy")
                .exact_match,
            1);
  EXPECT_EQ(score("gold: \"{{ code }}\"\nfilters: [last_number]\n", "+1, no: 41").answer, "41");
  EXPECT_EQ(score("gold: \"{{ code }}\"\nfilters: [last_number]\n", "+1, no: 41").exact_match, 1);
  EXPECT_EQ(score("golds: names\nmetric: contains\n", "in the CH part").exact_match, 1);
  EXPECT_EQ(score("golds: names\nmetric: contains\n", "in Italy").exact_match, 0);
  // Two words of three against one of one: precision 1/2 (the article is dropped), recall 1.
  EXPECT_DOUBLE_EQ(score(country + "metric: qa_f1\n", "the Switzerland maybe").exact_match,
                   2 * 0.5 * 1 / 1.5);
  EXPECT_NEAR(score(country + "metric: rouge\n", "Switzerland").exact_match, 1, 1e-6);
}

TEST_F(WrittenTask, ChoicesComeFromTheRow) {
  const std::string yaml =
      "data: rows.jsonl\nprompt: \"{{ city }} lies in the\"\nchoices: options\nanswer: right\n";
  const auto task = open("choice", yaml).value();
  EXPECT_EQ(task->example(0).value().choices, (std::vector<std::string>{"north", "south"}));
  EXPECT_EQ(task->example(0).value().golds, std::vector<std::string>{"south"});
  EXPECT_THAT(message("generate", yaml), HasSubstr("use choice/"));
}

// A measurement is found by the content of its example, so what changes the score changes that.
TEST_F(WrittenTask, TheHashCoversHowItIsScored) {
  const std::string yaml = "data: rows.jsonl\nprompt: \"{{ city }}\"\ngold: \"{{ country }}\"\n";
  const auto hash = [&](const std::string& more) {
    return open("generate", yaml + more).value()->example(0).value().hash;
  };
  EXPECT_EQ(hash(""), hash("metric: exact_match\n"));
  EXPECT_NE(hash(""), hash("metric: rouge\n"));
  EXPECT_NE(hash(""), hash("filters: [strip]\n"));
}

TEST_F(WrittenTask, MistakesAreExplained) {
  const std::string rows = "data: rows.jsonl\nprompt: \"{{ city }}\"\n";
  EXPECT_THAT(message("generate", rows), HasSubstr("exactly one must be there"));
  EXPECT_THAT(message("generate", rows + "gold: x\ngolds: names\n"),
              HasSubstr("exactly one must be there"));
  EXPECT_THAT(message("generate", "prompt: x\ngold: x\n"), HasSubstr("\"data\" is missing"));
  EXPECT_THAT(message("generate", rows + "gold: x\nfilters: [tidy]\n"),
              HasSubstr("task.yaml:4:10: \"filters\" holds \"tidy\"; allowed are strip"));
  EXPECT_THAT(message("generate", rows + "gold: x\nmetric: bleu\n"), HasSubstr("\"bleu\""));
  EXPECT_THAT(message("generate", rows + "gold: x\nstop: y\n"), HasSubstr("stops"));
  EXPECT_THAT(message("generate", "data: rows.jsonl\nprompt: \"{{ city \"\ngold: x\n"),
              HasSubstr("task.yaml: prompt"));
  EXPECT_THAT(message("generate", rows + "golds: missing\n"), HasSubstr("rows.jsonl:1"));
  EXPECT_THAT(message("generate", rows + "gold: \"{{ nothing }}\"\n"), HasSubstr("gold answer"));
  EXPECT_THAT(message("choice", rows + "choices: options\n"), HasSubstr("together"));
  EXPECT_THAT(message("choice", rows + "choices: options\nanswer: code\n"),
              HasSubstr("\"code\" must be the number of the right choice, from 0 to 1"));
  EXPECT_THAT(message("choice", rows + "gold: x\n"), HasSubstr("use generate/"));
  EXPECT_THAT(message("generate", "- a\n"), HasSubstr("must be a map"));
  EXPECT_THAT(message("generate", "a: [\n"), HasSubstr("not valid YAML"));
  const auto missing = open_task(testing::protocol_of("generate/../task.yaml", "test", 0),
                                 {.data_dir = dir_.path().string()});
  EXPECT_THAT(missing.error().message, HasSubstr("below the folder of data sets"));
}

}  // namespace
}  // namespace kvsweep::task
