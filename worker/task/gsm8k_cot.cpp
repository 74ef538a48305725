// GSM8K with chain-of-thought exemplars, as in lm-evaluation-harness 0.4: gsm8k_cot version 3.0 and
// gsm8k_cot_llama version 4.0. The shots are the first ones of 8 fixed exemplars (Wei et al., arXiv
// 2201.11903), the same for every example, so all prompts begin alike. Data:
// DATA_DIR/gsm8k/test.jsonl and train.jsonl as published, and cot_fewshot_8.json: a list of objects
// with "question", "target_gsm8k_cot" and "target_gsm8k_cot_llama".
//
// lm-eval has the split test alone; train is for tuning without touching test rows.
#include <numeric>

#include "worker/task/math_task.hpp"
#include "worker/task/problem_file.hpp"

namespace kvsweep::task {
namespace {

const MathStyle& cot_style() {
  static const MathStyle kStyle = {
      "Q: ", "\nA:", " ", {"Q:", "</s>", "<|im_end|>"}, strict_match_cot};
  return kStyle;
}

const MathStyle& llama_style() {
  static const MathStyle kStyle = {
      "Given the following problem, reason and give a final answer to the problem.\nProblem: ",
      "\nYour response should end with \"The final answer is [answer]\" where [answer] is the "
      "response to the problem.\n",
      "",
      {"<|eot_id|>", "<|start_header_id|>user<|end_header_id|>", "Q:", "</s>", "<|im_end|>"},
      strict_match_llama};
  return kStyle;
}

Result<Problem> exemplar(const Json& item, const std::string& target, const std::string& where) {
  for (const std::string& member : {std::string("question"), target}) {
    if (item.is_object() && item.contains(member) && item[member].is_string()) continue;
    return bad_input(where + ": an exemplar has no text \"" + member + "\"");
  }
  return Problem{item["question"].get<std::string>(), item[target].get<std::string>()};
}

Result<std::shared_ptr<const Problems>> read_exemplars(const std::string& path,
                                                       const std::string& target) {
  const Result<Json> json = read_json_file(path);
  if (!json.ok() && json.error().code == ErrorCode::not_found) {
    return not_found(path + " does not exist; it holds the 8 exemplars of lm-eval's gsm8k_cot");
  }
  if (!json.ok()) return json.error();
  if (!json->is_array()) return bad_input(path + " is not a list of exemplars");
  Problems exemplars;
  for (const Json& item : *json) {
    KVSWEEP_ASSIGN(Problem problem, exemplar(item, target, path));
    exemplars.push_back(std::move(problem));
  }
  return std::make_shared<const Problems>(std::move(exemplars));
}

}  // namespace

Result<std::unique_ptr<Task>> open_gsm8k_cot(const TaskProtocol& protocol,
                                             const TaskInputs& inputs) {
  const std::string dir = inputs.data_dir + "/gsm8k/";
  const bool llama = protocol.name == "gsm8k_cot_llama";
  MathTaskParts parts{.protocol = protocol};
  KVSWEEP_ASSIGN(parts.problems, read_published(inputs.data_dir, protocol.split));
  parts.style = llama ? &llama_style() : &cot_style();
  parts.gold_is_number = true;
  if (protocol.shots > 0) {
    KVSWEEP_ASSIGN(parts.shot_pool,
                   read_exemplars(dir + "cot_fewshot_8.json", "target_" + protocol.name));
    const size_t there = parts.shot_pool->size();
    if (static_cast<size_t>(protocol.shots) > there) {
      return bad_input("task " + protocol.name + ": shots is " + std::to_string(protocol.shots) +
                       ", but there are only " + std::to_string(there) + " exemplars");
    }
    std::vector<uint32_t> rows(static_cast<size_t>(protocol.shots));
    std::iota(rows.begin(), rows.end(), 0);
    parts.shots = {std::move(rows)};
  }
  return std::unique_ptr<Task>(std::make_unique<MathTask>(std::move(parts)));
}

}  // namespace kvsweep::task
