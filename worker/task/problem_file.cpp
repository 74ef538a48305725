#include "worker/task/problem_file.hpp"

#include <string_view>

#include "core/file.hpp"
#include "core/json.hpp"

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

Result<std::string> string_member(const Json& row, const char* key, const std::string& where) {
  const auto member = row.find(key);
  if (member == row.end()) {
    return bad_input(where + ": \"" + key +
                     "\" is missing; each line must hold \"question\" and \"answer\"");
  }
  if (!member->is_string()) {
    return bad_input(where + ": \"" + key + "\" must be a string, not " + member->type_name());
  }
  return member->get<std::string>();
}

Result<Problem> problem_of(std::string_view line, const std::string& where) {
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
  Problem problem;
  KVSWEEP_ASSIGN(problem.question, string_member(row, "question", where));
  KVSWEEP_ASSIGN(problem.answer, string_member(row, "answer", where));
  return problem;
}

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Result<Problems> read_problems(const std::string& path) {
  KVSWEEP_ASSIGN(const std::string text, read_file(path));
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  Problems problems;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (blank(line)) continue;
    KVSWEEP_ASSIGN(Problem problem, problem_of(line, path + ":" + std::to_string(number)));
    problems.push_back(std::move(problem));
  }
  if (problems.empty()) {
    return bad_input(path + " holds no problem; it must have one JSON object per line");
  }
  return problems;
}

}  // namespace kvsweep::task
