// Data sets as JSON lines: one object a line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep::task {

// Calls `use(object, where)` for every line of the file in order, with `where` = "path:line" to
// begin messages with. Blank lines, a byte order mark and CRLF are fine. Stops at the first error:
// of `use`, or of a line that is not a JSON object in UTF-8. `what` ("problem") names what a line
// holds in the error for a file without any.
Status for_each_json_line(const std::string& path, const std::string& what,
                          const std::function<Status(const Json&, const std::string&)>& use);

// The member `key` of a line, or an error that ends with `; each line must hold ` and `form`.
Result<std::string> string_member(const Json& row, const std::string& key, const std::string& where,
                                  const std::string& form);

// The same for a list of strings; null counts as an empty one.
Result<std::vector<std::string>> strings_member(const Json& row, const std::string& key,
                                                const std::string& where, const std::string& form);

}  // namespace kvsweep::task
