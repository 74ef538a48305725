// Tasks that a user describes in a YAML file, and what they share with choice/FILE of JSON lines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "worker/task/task.hpp"

namespace kvsweep::task {

// The task of a YAML file, of kind generate or choices as the name says. Errors: those of
// read_task_file; a file of the other kind; a row without what the file names (bad_input, with its
// line); a template that does not compile.
Result<std::unique_ptr<Task>> open_written(const TaskProtocol& protocol, const TaskInputs& inputs);

// bad_input, beginning with `where`, unless there are two or more that differ and are not empty.
Status check_choices(const std::vector<std::string>& choices, const std::string& where);

// The number of the right choice, from 0, in the member `member` of a row.
Result<size_t> right_choice(const Json& row, const std::string& member, size_t choices,
                            const std::string& where);

}  // namespace kvsweep::task
