#include "worker/task/json_lines.hpp"

#include <algorithm>
#include <string_view>

#include "core/file.hpp"

namespace kvsweep::task {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..." -> the text
// from "syntax error" on.
std::string reason_of(const Json::parse_error& error) {
  const std::string text = error.what();
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

Result<Json> object_of(std::string_view line, const std::string& where) {
  Json row;
  try {
    row = Json::parse(line);
  } catch (const Json::parse_error& error) {
    return bad_input(where + ": not valid JSON at byte " + std::to_string(error.byte) +
                     " of the line (" + reason_of(error) + ")");
  }
  if (!row.is_object()) {
    return bad_input(where + ": the line must be a JSON object, not " + row.type_name());
  }
  return row;
}

Error missing(const std::string& key, const std::string& where, const std::string& form) {
  return bad_input(where + ": \"" + key + "\" is missing; each line must hold " + form);
}

}  // namespace

Status for_each_json_line(const std::string& path, const std::string& what,
                          const std::function<Status(const Json&, const std::string&)>& use) {
  KVSWEEP_ASSIGN(const std::string text, read_file(path));
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  bool any = false;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (blank(line)) continue;
    const std::string where = path + ":" + std::to_string(number);
    KVSWEEP_ASSIGN(const Json row, object_of(line, where));
    KVSWEEP_TRY(use(row, where));
    any = true;
  }
  if (!any) {
    return bad_input(path + " holds no " + what + "; it must have one JSON object per line");
  }
  return {};
}

Result<std::string> string_member(const Json& row, const std::string& key, const std::string& where,
                                  const std::string& form) {
  const auto member = row.find(key);
  if (member == row.end()) return missing(key, where, form);
  if (!member->is_string()) {
    return bad_input(where + ": \"" + key + "\" must be a string, not " + member->type_name());
  }
  return member->get<std::string>();
}

Result<std::vector<std::string>> strings_member(const Json& row, const std::string& key,
                                                const std::string& where, const std::string& form) {
  const auto member = row.find(key);
  if (member == row.end()) return missing(key, where, form);
  if (member->is_null()) return std::vector<std::string>{};
  std::vector<std::string> strings;
  const bool list = member->is_array();
  for (size_t i = 0; list && i < member->size() && (*member)[i].is_string(); ++i) {
    strings.push_back((*member)[i].get<std::string>());
  }
  if (!list || strings.size() != member->size()) {
    return bad_input(where + ": \"" + key + "\" must be a list of strings");
  }
  return strings;
}

}  // namespace kvsweep::task
