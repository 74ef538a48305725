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

Result<std::shared_ptr<const Problems>> read_published(const std::string& data_dir,
                                                       const std::string& split) {
  const std::string path = data_dir + "/gsm8k/" + split + ".jsonl";
  Result<Problems> problems = read_problems(path);
  if (problems.ok()) return std::make_shared<const Problems>(std::move(problems).value());
  if (problems.error().code != ErrorCode::not_found) return problems.error();
  return not_found(path + " does not exist; give the folder that holds gsm8k/train.jsonl and " +
                   "gsm8k/test.jsonl with --data-dir or KVSWEEP_DATA_DIR");
}

}  // namespace kvsweep::task
