#include "worker/task/problem_file.hpp"

#include "worker/task/json_lines.hpp"

namespace kvsweep::task {

Result<Problems> read_problems(const std::string& path) {
  const std::string form = "\"question\" and \"answer\"";
  Problems problems;
  KVSWEEP_TRY(
      for_each_json_line(path, "problem", [&](const Json& row, const std::string& where) -> Status {
        Problem problem;
        KVSWEEP_ASSIGN(problem.question, string_member(row, "question", where, form));
        KVSWEEP_ASSIGN(problem.answer, string_member(row, "answer", where, form));
        problems.push_back(std::move(problem));
        return {};
      }));
  return problems;
}

}  // namespace kvsweep::task
