// choice/FILE: multiple choice by log-likelihood, as lm-eval's output type multiple_choice. FILE is
// one of JSON lines below the folder of data sets; each line is
//
//   {"question": TEXT, "choices": [TEXT, ...], "answer": INDEX}
//
// with at least two choices; `answer` counts from 0. The model reads the question, one blank and a
// choice; the score is lm-eval's acc, the strict one its acc_norm (choices.hpp). Shots are the
// first ones of the file that are not the example itself, each its question, a blank and its right
// choice, then an empty line.
#include <utility>

#include "worker/task/data_path.hpp"
#include "worker/task/json_lines.hpp"
#include "worker/task/task.hpp"
#include "worker/task/written.hpp"

namespace kvsweep::task {
namespace {

constexpr const char* kForm = "\"question\", \"choices\" and \"answer\"";

struct Question {
  std::string text;
  std::vector<std::string> choices;
  size_t answer = 0;
};

Result<Question> question_of(const Json& row, const std::string& where) {
  Question question;
  KVSWEEP_ASSIGN(question.text, string_member(row, "question", where, kForm));
  KVSWEEP_ASSIGN(question.choices, strings_member(row, "choices", where, kForm));
  KVSWEEP_TRY(check_choices(question.choices, where));
  KVSWEEP_ASSIGN(question.answer, right_choice(row, "answer", question.choices.size(), where));
  return question;
}

class ChoiceTask final : public Task {
 public:
  ChoiceTask(TaskProtocol protocol, std::vector<Question> questions)
      : protocol_(std::move(protocol)), questions_(std::move(questions)) {}

  int64_t size() const override { return static_cast<int64_t>(questions_.size()); }

  Result<Example> example(int64_t index) const override {
    if (index < 0 || index >= size()) return no_example(protocol_, index, size());
    const Question& question = questions_[static_cast<size_t>(index)];
    Example example;
    int shots = 0;
    for (size_t i = 0; shots < protocol_.shots; ++i) {
      if (static_cast<int64_t>(i) == index) continue;
      example.prompt += questions_[i].text + " " + questions_[i].choices[questions_[i].answer];
      example.prompt += "\n\n";
      ++shots;
    }
    example.prompt += question.text;
    example.choices = question.choices;
    example.golds = {question.choices[question.answer]};
    example.truncation = Truncation::left;
    example.hash = example_hash(example);
    return example;
  }

 private:
  TaskProtocol protocol_;
  std::vector<Question> questions_;
};

}  // namespace

Result<std::unique_ptr<Task>> open_choice(const TaskProtocol& protocol, const TaskInputs& inputs) {
  if (protocol.name.ends_with(".yaml")) return open_written(protocol, inputs);
  KVSWEEP_ASSIGN(const std::string path, data_path(protocol, inputs.data_dir));
  std::vector<Question> questions;
  KVSWEEP_TRY(for_each_json_line(path, "question",
                                 [&](const Json& row, const std::string& where) -> Status {
                                   KVSWEEP_ASSIGN(Question question, question_of(row, where));
                                   questions.push_back(std::move(question));
                                   return {};
                                 }));
  if (protocol.shots >= static_cast<int>(questions.size())) {
    return bad_input("task " + protocol.name + ": shots is " + std::to_string(protocol.shots) +
                     ", but only " + std::to_string(questions.size() - 1) +
                     " other questions can serve as shots");
  }
  return std::unique_ptr<Task>(std::make_unique<ChoiceTask>(protocol, std::move(questions)));
}

}  // namespace kvsweep::task
