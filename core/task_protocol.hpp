// TaskProtocol: a benchmark with everything that fixes its outcome but model and map.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep {

// How an example is run.
//   generate  greedy decoding, scored text: exact_match, answer_agreement
//   forced    teacher-forced on the baseline's output: token_agreement, kl, nll
//   choices   log-likelihoods of given continuations: exact_match (the likeliest is right)
//   rolling   log-likelihood of a given text: nll
enum class RunMode : uint8_t { generate, forced, choices, rolling };
std::string_view to_string(RunMode mode);
Result<RunMode> run_mode_from(std::string_view name);

// How a prompt with its shots is put to the model.
//   text       one text
//   chat       the same text as one message to a chat model
//   multiturn  each shot a message and its answer, then the question
enum class TaskForm : uint8_t { text, chat, multiturn };
std::string_view to_string(TaskForm form);
Result<TaskForm> task_form_from(std::string_view name);

// Members that a line of tasks.def leaves out have these values.
struct TaskInfo {
  std::string_view name;  // "gsm8k"; a family ends "/*" and has a task per file: perplexity/a.txt
  std::string_view version;  // bumped when prompts, stops or scores change
  std::string_view summary;
  RunMode kind = RunMode::generate;  // what its examples ask for: never forced
  int default_shots = 0;
  int max_new_tokens = 0;            // of kind generate
  int length = 0;                    // default of TaskProtocol::length; 0 = the task has none
  std::string_view splits = "test";  // comma-separated, the first is the default
  std::string_view forms = "text";   // likewise
  std::string_view data = "";  // folder of its files in that of the data sets; "" = needs no data;
                               // of a family ".": the files that the tasks' names say
  bool needs_tokenizer = false;  // its examples depend on the model's tokenizer
  bool seeded = false;           // generated from a seed
};
const std::vector<TaskInfo>& tasks();  // core/catalog/tasks.def
// Of a task's name; of "perplexity/a.txt" that of the family "perplexity/*".
Result<TaskInfo> task_info(std::string_view name);

// Members that do not have their default are part of the JSON, so that tasks which do not use them
// keep their hashes: length, form, context, rows.
struct TaskProtocol {
  std::string name;
  std::string version;
  std::string split;
  int shots = 0;
  int64_t seed = 0;  // of generated tasks; 0 for data sets
  int max_new_tokens = 0;
  int length = 0;  // tokens a prompt or window aims at, of tasks that are made to a length; else 0
  TaskForm form = TaskForm::text;
  int context = 0;   // tokens a prompt may have; 0 = as many as the model has room for
  std::string rows;  // half of the split: "search" or "report"; "" = all of it
  friend bool operator==(const TaskProtocol&, const TaskProtocol&) = default;
};
Json to_json(const TaskProtocol& protocol);
Result<TaskProtocol> task_protocol_from_json(const Json& json);
std::string protocol_hash(const TaskProtocol& protocol, RunMode mode);
const std::vector<std::string>& row_halves();  // search, report

// What measurements are compared by. exact_match stands for a task's own score, 0 to 1.
enum class Metric : uint8_t { exact_match, answer_agreement, token_agreement, kl, nll };
std::string_view to_string(Metric metric);
Result<Metric> metric_from(std::string_view name);  // error gives the nearest
const std::vector<std::string>& metric_names();
bool bounded(Metric metric);  // a loss lies between -1 and 1; otherwise it is in nats per token
// How the examples of the task are run to get the metric.
RunMode mode_of(const TaskProtocol& protocol, Metric metric);
// All modes that examples of the task may be run in.
std::vector<RunMode> modes_of(const TaskProtocol& protocol);
// Whether a task of this kind has the metric.
bool measures(RunMode kind, Metric metric);

}  // namespace kvsweep
