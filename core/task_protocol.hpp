// TaskProtocol: a benchmark with everything that fixes its outcome but model and map.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep {

struct TaskInfo {
  std::string_view name;     // "gsm8k"
  std::string_view version;  // bumped when prompts, stops or scores change
  int default_shots;
  int max_new_tokens;
  int length;               // default of TaskProtocol::length; 0 = the task has none
  bool needs_data;          // a data set folder must be given
  std::string_view splits;  // comma-separated, the first is the default
  std::string_view summary;
};
const std::vector<TaskInfo>& tasks();  // core/catalog/tasks.def
Result<TaskInfo> task_info(std::string_view name);

// How an example is run.
//   generate  greedy decoding, scored text: exact_match, answer_agreement
//   forced    teacher-forced on the baseline's output: token_agreement, kl, nll
enum class RunMode : uint8_t { generate, forced };
std::string_view to_string(RunMode mode);
Result<RunMode> run_mode_from(std::string_view name);

struct TaskProtocol {
  std::string name;
  std::string version;
  std::string split;
  int shots = 0;
  int64_t seed = 0;  // of generated tasks; 0 for data sets
  int max_new_tokens = 0;
  int length = 0;  // tokens a prompt aims at, of tasks that are made to a length; else 0 (and then
                   // not part of the JSON, so that other tasks keep their hashes)
  friend bool operator==(const TaskProtocol&, const TaskProtocol&) = default;
};
Json to_json(const TaskProtocol& protocol);
Result<TaskProtocol> task_protocol_from_json(const Json& json);
std::string protocol_hash(const TaskProtocol& protocol, RunMode mode);

enum class Metric : uint8_t { exact_match, answer_agreement, token_agreement, kl };
std::string_view to_string(Metric metric);
Result<Metric> metric_from(std::string_view name);  // error gives the nearest
const std::vector<std::string>& metric_names();
RunMode mode_of(Metric metric);

}  // namespace kvsweep
