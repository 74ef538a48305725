// A task that a user describes in a YAML file: where its rows are, what the model is asked, how the
// answer is scored. What the keys mean stands in docs/tasks.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep {

struct TaskFile {
  std::string data;     // file of JSON lines, from the folder of the YAML file
  std::string prompt;   // Jinja over the members of a row
  std::string gold;     // Jinja likewise; or
  std::string golds;    // the member that holds a list of texts
  std::string choices;  // the member that holds a list of texts; makes it multiple choice
  std::string answer;   // the member that holds the number of the right choice, from 0
  std::vector<std::string> stops;
  std::vector<std::string> filters;  // of task_filters(), in the order they are applied
  std::string metric = "exact_match";
};

const std::vector<std::string>& task_filters();
const std::vector<std::string>& task_metrics();

// Everything that decides a score, for content hashes.
Json to_json(const TaskFile& file);

// bad_input with line and column for unknown keys, filters and metrics, and for a file that has
// neither gold, golds nor choices with answer, or more than one of them. not_found, io.
Result<TaskFile> read_task_file(const std::string& path);

}  // namespace kvsweep
