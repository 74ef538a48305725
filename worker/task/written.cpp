// generate/FILE.yaml and choice/FILE.yaml: tasks that a user describes in a YAML file below the
// folder of data sets (core/task_file.hpp, docs/tasks.md).
#include "worker/task/written.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "core/task_file.hpp"
#include "core/text.hpp"
#include "worker/task/data_path.hpp"
#include "worker/task/json_lines.hpp"
#include "worker/task/longbench_metrics.hpp"
#include "worker/task/math_answer.hpp"
#include "worker/text/text_template.hpp"

namespace kvsweep::task {
namespace {

constexpr const char* kBlanks = " \t\n\r\v\f";

std::string stripped(const std::string& text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string lowered(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string without_punctuation(std::string text) {
  std::erase_if(text, [](char c) { return std::ispunct(static_cast<unsigned char>(c)) != 0; });
  return text;
}

// The first line that is not blank.
std::string first_line(const std::string& text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Golds go through the filters that change how a text is written, not through those that look for
// the answer in it.
std::string filtered(std::string text, const std::vector<std::string>& filters, bool gold) {
  for (const std::string& filter : filters) {
    if (filter == "strip") text = stripped(text);
    if (filter == "lower") text = lowered(std::move(text));
    if (filter == "no_punctuation") text = without_punctuation(std::move(text));
    if (filter == "first_line" && !gold) text = first_line(text);
    if (filter == "last_number" && !gold) text = flexible_extract(text);
  }
  return text;
}

double score_of(const std::string& metric, const std::string& answer, const std::string& gold) {
  if (metric == "contains") return answer.find(gold) != std::string::npos ? 1 : 0;
  if (metric == "qa_f1") return qa_f1(answer, gold);
  if (metric == "rouge") return rouge(answer, gold);
  return answer == gold ? 1 : 0;
}

class WrittenTask final : public Task {
 public:
  WrittenTask(TaskProtocol protocol, TaskFile file, std::vector<Example> examples)
      : protocol_(std::move(protocol)), file_(std::move(file)), examples_(std::move(examples)) {}

  int64_t size() const override { return static_cast<int64_t>(examples_.size()); }

  Result<Example> example(int64_t index) const override {
    if (index < 0 || index >= size()) return no_example(protocol_, index, size());
    return examples_[static_cast<size_t>(index)];
  }

  Score score(const Example& example, const std::string& output) const override {
    Score score;
    score.answer = filtered(cut_at_stops(output, example.stops), file_.filters, false);
    for (const std::string& gold : example.golds) {
      const double one = score_of(file_.metric, score.answer, filtered(gold, file_.filters, true));
      score.exact_match = std::max(score.exact_match, one);
    }
    if (score.answer.empty()) score.answer = kInvalidAnswer;
    return score;
  }

 private:
  TaskProtocol protocol_;
  TaskFile file_;
  std::vector<Example> examples_;
};

// Makes examples from rows.
class Writer {
 public:
  static Result<Writer> open(const TaskFile& file, const std::string& path) {
    KVSWEEP_ASSIGN(auto prompt, text::TextTemplate::compile(file.prompt, path + ": prompt"));
    KVSWEEP_ASSIGN(auto gold, text::TextTemplate::compile(file.gold, path + ": gold"));
    return Writer(file, std::move(prompt), std::move(gold));
  }

  Result<Example> example(const Json& row, const std::string& where) const {
    Example example;
    KVSWEEP_ASSIGN(example.prompt, prompt_.render(row));
    if (example.prompt.empty()) return bad_input(where + ": the prompt of this row is empty");
    example.stops = file_.stops;
    example.truncation = Truncation::left;
    example.scored_by = canonical_json(to_json(file_)).value();
    KVSWEEP_TRY(set_golds(row, where, example));
    example.hash = example_hash(example);
    return example;
  }

 private:
  Writer(const TaskFile& file, text::TextTemplate prompt, text::TextTemplate gold)
      : file_(file), prompt_(std::move(prompt)), gold_(std::move(gold)) {}

  Status set_golds(const Json& row, const std::string& where, Example& example) const {
    if (!file_.choices.empty()) return set_choices(row, where, example);
    if (file_.golds.empty()) {
      KVSWEEP_ASSIGN(const std::string gold, gold_.render(row));
      example.golds = {gold};
    } else {
      KVSWEEP_ASSIGN(example.golds, strings_member(row, file_.golds, where, file_.golds));
    }
    const bool blank = std::any_of(example.golds.begin(), example.golds.end(),
                                   [](const std::string& gold) { return gold.empty(); });
    if (!example.golds.empty() && !blank) return {};
    return bad_input(where + ": this row has no gold answer, or an empty one");
  }

  Status set_choices(const Json& row, const std::string& where, Example& example) const {
    KVSWEEP_ASSIGN(example.choices, strings_member(row, file_.choices, where, file_.choices));
    KVSWEEP_TRY(check_choices(example.choices, where));
    KVSWEEP_ASSIGN(const size_t right,
                   right_choice(row, file_.answer, example.choices.size(), where));
    example.golds = {example.choices[right]};
    return {};
  }

  TaskFile file_;
  text::TextTemplate prompt_;
  text::TextTemplate gold_;
};

}  // namespace

Result<std::unique_ptr<Task>> open_written(const TaskProtocol& protocol, const TaskInputs& inputs) {
  KVSWEEP_ASSIGN(const std::string path, data_path(protocol, inputs.data_dir));
  KVSWEEP_ASSIGN(TaskFile file, read_task_file(path));
  const bool asks_choices = protocol.name.starts_with("choice/");
  if (asks_choices == file.choices.empty()) {
    return bad_input("task " + protocol.name + ": " + path +
                     (asks_choices ? " has no choices; use generate/ and the file"
                                   : " has choices; use choice/ and the file"));
  }
  if (protocol.shots != 0) {
    return bad_input("task " + protocol.name + ": shots is " + std::to_string(protocol.shots) +
                     "; it must be 0: a YAML file writes its shots into the prompt");
  }
  KVSWEEP_ASSIGN(const Writer writer, Writer::open(file, path));
  const std::string rows = (std::filesystem::path(path).parent_path() / file.data).string();
  std::vector<Example> examples;
  KVSWEEP_TRY(
      for_each_json_line(rows, "row", [&](const Json& row, const std::string& where) -> Status {
        KVSWEEP_ASSIGN(Example example, writer.example(row, where));
        examples.push_back(std::move(example));
        return {};
      }));
  return std::unique_ptr<Task>(
      std::make_unique<WrittenTask>(protocol, std::move(file), std::move(examples)));
}

Status check_choices(const std::vector<std::string>& choices, const std::string& where) {
  std::vector<std::string> sorted = choices;
  std::sort(sorted.begin(), sorted.end());
  const bool repeated = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (choices.size() >= 2 && !repeated && !sorted.front().empty()) return {};
  return bad_input(where + ": the choices must be two or more texts that differ and are not empty");
}

Result<size_t> right_choice(const Json& row, const std::string& member, size_t choices,
                            const std::string& where) {
  const auto answer = row.find(member);
  const bool fits =
      answer != row.end() && answer->is_number_integer() && *answer >= 0 && *answer < Json(choices);
  if (fits) return answer->get<size_t>();
  return bad_input(where + ": \"" + member +
                   "\" must be the number of the right choice, from 0 to " +
                   std::to_string(choices - 1));
}

}  // namespace kvsweep::task
