// Task: one benchmark: its prompts, stop rules and scores. One file each plus one line in
// core/catalog/tasks.def.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/measurement.hpp"
#include "core/result.hpp"
#include "core/task_protocol.hpp"

namespace kvsweep::task {

struct Example {
  std::string prompt;              // text mode, shots included
  std::vector<std::string> stops;  // output is cut at the first of these
  std::string gold;                // as scored
  std::string hash;                // SHA-256 of prompt, stops and gold: its content address
};

struct Score {
  double exact_match = 0;              // 0 or 1, the task's default filter
  std::optional<double> strict_match;  // the strict filter, where the task has one
  std::string answer;                  // extracted by the default filter and cleaned as for the
                                       // comparison; "[invalid]" when none
};

// Immutable after opening; const methods are thread-safe.
class Task {
 public:
  virtual ~Task() = default;
  virtual int64_t size() const = 0;  // examples in the split, at least 1
  // A pure function of protocol, data and index. bad_input when there is no such example.
  virtual Result<Example> example(int64_t index) const = 0;
  // Cuts `output` at the stops itself.
  virtual Score score(const Example& example, const std::string& output) const = 0;
};

// `data_dir` is the folder of data sets ("" = none given): gsm8k reads data_dir/gsm8k/*.jsonl.
// Error names the file and line, or says which option or variable gives the folder; a task, version
// or split that is not in the catalog, and impossible shots, are bad_input.
Result<std::unique_ptr<Task>> open_task(const TaskProtocol& protocol, const std::string& data_dir);

// Text before the first occurrence of any stop string. Empty stop strings are ignored.
std::string cut_at_stops(const std::string& text, const std::vector<std::string>& stops);

// SHA-256 over prompt, stops and gold, each written as its length, a colon and its bytes, with the
// number of stops before them.
std::string example_hash(const Example& example);

}  // namespace kvsweep::task
