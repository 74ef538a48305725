// Reading problems from a JSON-lines file.
#pragma once

#include <string>

#include "core/result.hpp"
#include "worker/task/math_task.hpp"

namespace kvsweep::task {

// One JSON object with strings `question` and `answer` per line; other members are ignored, as are
// lines of white space, a byte order mark and carriage returns before the line feed. An error gives
// "PATH:LINE: what is wrong": not JSON, not an object, a member missing or not a string, text that
// is not UTF-8. A file without a problem is an error.
Result<Problems> read_problems(const std::string& path);

// DATA_DIR/gsm8k/SPLIT.jsonl. not_found says which files the folder should hold.
Result<std::shared_ptr<const Problems>> read_published(const std::string& data_dir,
                                                       const std::string& split);

}  // namespace kvsweep::task
