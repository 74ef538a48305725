// RULER's subtasks and the needle test as tasks.
#pragma once

#include <memory>
#include <string>

#include "worker/task/ruler/generator.hpp"
#include "worker/task/task.hpp"

namespace kvsweep::task::ruler {

// `protocol.name` is "ruler/" and a subtask, or "needle"; its length counts prompt and answer, in
// the tokens of `counter` (with special tokens, where the model has them, so that a prompt never
// exceeds it). Splits are search and report: for RULER disjoint for all seeds by the hash of what a
// row asks for (split_home.hpp), for the needle test every second cell of the grid.
//
// Examples carry the answer prefix at the end of the prompt and the reference strings in `gold`,
// one a line. exact_match is the share of them that the output contains; strict_match of the needle
// test is ROUGE-1 F against the needle, which is published times 10; the answer is the references
// found. Errors (bad_input): an unknown name or split, shots, a length too short, more new tokens
// than a row keeps for its answer; and those of load_material.
Result<std::unique_ptr<Task>> open_ruler(const TaskProtocol& protocol, const std::string& data_dir,
                                         TokenCounter counter);

}  // namespace kvsweep::task::ruler
