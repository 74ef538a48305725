// Where the file of a family's task lies.
#pragma once

#include <string>

#include "core/result.hpp"
#include "core/task_protocol.hpp"

namespace kvsweep::task {

// Of "perplexity/wikitext2/wiki.test.raw" with DATA_DIR: DATA_DIR/wikitext2/wiki.test.raw.
// bad_input when the name leads out of the folder; not_found when there is no such file.
Result<std::string> data_path(const TaskProtocol& protocol, const std::string& data_dir);

}  // namespace kvsweep::task
