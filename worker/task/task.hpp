// Task: one benchmark: its prompts, stop rules and scores. One file each plus one line in
// core/catalog/tasks.def.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/measurement.hpp"
#include "core/result.hpp"
#include "core/task_protocol.hpp"

namespace kvsweep::task {

struct Example {
  std::string prompt;                    // text mode, shots included
  std::vector<std::string> stops;        // output is cut at the first of these
  std::string gold;                      // as scored
  std::string hash;                      // SHA-256 of prompt, stops and gold: its content address
};

struct Score {
  double exact_match = 0;                // the task's default filter
  std::optional<double> strict_match;    // the strict filter, where the task has one
  std::string answer;                    // extracted by the default filter; "[invalid]" when none
};

// Immutable after opening; const methods are thread-safe.
class Task {
 public:
  virtual ~Task() = default;
  virtual int64_t size() const = 0;  // examples in the split
  virtual Result<Example> example(int64_t index) const = 0;
  virtual Score score(const Example& example, const std::string& output) const = 0;
};

// `data_dir` is the folder of data sets ("" = none given): gsm8k reads data_dir/gsm8k/*.jsonl.
// Error names the file and line, or says which option or variable gives the folder.
Result<std::unique_ptr<Task>> open_task(const TaskProtocol& protocol, const std::string& data_dir);

// Text before the first occurrence of any stop string.
std::string cut_at_stops(const std::string& text, const std::vector<std::string>& stops);

}  // namespace kvsweep::task
