#include "worker/task/longbench_data.hpp"

#include <algorithm>
#include <filesystem>

#include "core/json.hpp"
#include "worker/task/json_lines.hpp"
#include "worker/task/longbench_metrics.hpp"

namespace kvsweep::task {
namespace {

// Far above any answer of LongBench; it bounds what ROUGE and difflib cost on a hostile file.
constexpr size_t kMaxAnswerBytes = size_t{64} << 10;

constexpr const char* kRowForm =
    "\"input\", \"context\", \"answers\", \"all_classes\" and \"length\"";

Result<int64_t> length_of(const Json& row, const std::string& where) {
  const auto member = row.find("length");
  if (member == row.end() || !member->is_number_integer() || member->get<int64_t>() < 0) {
    return bad_input(where + ": \"length\" must be a whole number of at least 0");
  }
  return member->get<int64_t>();
}

Result<LongBenchRow> row_of(const Json& json, const std::string& where, LongBenchMetric metric) {
  LongBenchRow row;
  KVSWEEP_ASSIGN(row.input, string_member(json, "input", where, kRowForm));
  KVSWEEP_ASSIGN(row.context, string_member(json, "context", where, kRowForm));
  KVSWEEP_ASSIGN(row.answers, strings_member(json, "answers", where, kRowForm));
  KVSWEEP_ASSIGN(row.classes, strings_member(json, "all_classes", where, kRowForm));
  KVSWEEP_ASSIGN(row.length, length_of(json, where));
  const auto id = json.find("_id");
  if (id != json.end() && id->is_string()) row.id = id->get<std::string>();
  KVSWEEP_TRY(check_answers(row.answers, row.classes, metric, where));
  return row;
}

}  // namespace

Status check_answers(const std::vector<std::string>& answers,
                     const std::vector<std::string>& classes, LongBenchMetric metric,
                     const std::string& where) {
  for (const std::string& answer : answers) {
    if (answer.size() > kMaxAnswerBytes) {
      return bad_input(where + ": an answer has " + std::to_string(answer.size()) +
                       " bytes; allowed are " + std::to_string(kMaxAnswerBytes));
    }
    if (metric == LongBenchMetric::retrieval && !names_paragraph(answer)) {
      return bad_input(where + ": the answer \"" + answer +
                       "\" names no paragraph; it must hold \"Paragraph N\"");
    }
    if (metric == LongBenchMetric::retrieval_zh && !names_paragraph_zh(answer)) {
      return bad_input(where + ": the answer \"" + answer +
                       "\" names no paragraph; it must hold \"段落N\"");
    }
  }
  if (metric == LongBenchMetric::classification && classes.empty()) {
    return bad_input(where + ": \"all_classes\" must list the class names");
  }
  return {};
}

Result<std::vector<LongBenchRow>> read_longbench(const std::string& path, const LongBenchSet& set) {
  std::vector<LongBenchRow> rows;
  KVSWEEP_TRY(
      for_each_json_line(path, "row", [&](const Json& json, const std::string& where) -> Status {
        KVSWEEP_ASSIGN(LongBenchRow row, row_of(json, where, set.metric));
        rows.push_back(std::move(row));
        return {};
      }));
  return rows;
}

Result<std::string> find_longbench(const LongBenchFile& file) {
  const std::string base = file.data_dir + "/longbench/";
  const std::string name = file.name + ".jsonl";
  std::vector<std::string> places = {base + name, base + "full/" + name};
  if (file.mini) places = {base + "mini/" + name};
  for (const std::string& place : places) {
    if (std::filesystem::exists(place)) return place;
  }
  if (file.mini) {
    return not_found(places[0] + " is missing; MilkThink-Lab/MiniLongBench publishes the rows");
  }
  return not_found("neither " + places[0] + " nor " + places[1] +
                   " is there; THUDM/LongBench publishes the sets as one archive of JSON lines");
}

Result<std::string> longbench_template(const std::string& data_dir, std::string_view set) {
  const std::string path = data_dir + "/longbench/config/dataset2prompt.json";
  if (!std::filesystem::exists(path)) {
    return not_found(path +
                     " is missing; copy LongBench/config of the repository "
                     "THUDM/LongBench there, which holds the official prompts");
  }
  KVSWEEP_ASSIGN(const Json templates, read_json_file(path));
  const auto found = templates.find(std::string(set));
  if (!templates.is_object() || found == templates.end() || !found->is_string()) {
    return bad_input(path + ": \"" + std::string(set) + "\" must be the prompt of that set");
  }
  return found->get<std::string>();
}

Result<std::string> fill_template(const std::string& prompt_template, const LongBenchRow& row,
                                  const std::string& where) {
  std::string prompt;
  for (size_t at = 0; at < prompt_template.size();) {
    const std::string_view rest = std::string_view(prompt_template).substr(at);
    const auto replace = [&](std::string_view field, const std::string& with) {
      if (!rest.starts_with(field)) return false;
      prompt += with;
      at += field.size();
      return true;
    };
    if (replace("{context}", row.context) || replace("{input}", row.input)) continue;
    if (replace("{{", "{") || replace("}}", "}")) continue;
    if (rest[0] == '{' || rest[0] == '}') {
      return bad_input(where +
                       ": the prompt has a field other than {context} and {input} at byte " +
                       std::to_string(at));
    }
    prompt += rest[0];
    ++at;
  }
  return prompt;
}

}  // namespace kvsweep::task
