#include "core/task_protocol.hpp"

#include <limits>

#include "core/hash.hpp"
#include "core/json_reader.hpp"
#include "core/text.hpp"

namespace kvsweep {
namespace {

std::string near_hint(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? "" : " (did you mean " + near + "?)";
}

}  // namespace

const std::vector<TaskInfo>& tasks() {
  static const std::vector<TaskInfo> kTable = {
#define KVSWEEP_TASK(id, name, version, shots, max_new_tokens, length, needs_data, splits, \
                     summary)                                                              \
  {name, version, shots, max_new_tokens, length, needs_data, splits, summary},
#include "core/catalog/tasks.def"
#undef KVSWEEP_TASK
  };
  return kTable;
}

Result<TaskInfo> task_info(std::string_view name) {
  std::vector<std::string> names;
  for (const TaskInfo& task : tasks()) {
    if (task.name == name) return task;
    names.emplace_back(task.name);
  }
  return bad_input("task \"" + std::string(name) + "\" is not known; allowed are " +
                   join(names, ", ") + near_hint(name, names));
}

std::string_view to_string(RunMode mode) {
  return mode == RunMode::generate ? "generate" : "forced";
}

Result<RunMode> run_mode_from(std::string_view name) {
  if (name == "generate") return RunMode::generate;
  if (name == "forced") return RunMode::forced;
  return bad_input("run mode \"" + std::string(name) +
                   "\" is not known; allowed are generate and forced");
}

Json to_json(const TaskProtocol& protocol) {
  Json json = {{"name", protocol.name},   {"version", protocol.version},
               {"split", protocol.split}, {"shots", protocol.shots},
               {"seed", protocol.seed},   {"max_new_tokens", protocol.max_new_tokens}};
  if (protocol.length != 0) json["length"] = protocol.length;
  return json;
}

Result<TaskProtocol> task_protocol_from_json(const Json& json) {
  constexpr int kMaxCount = 1 << 20;
  JsonReader reader(json, "task");
  TaskProtocol protocol;
  protocol.name = reader.string("name", 128);
  protocol.version = reader.string("version", 64);
  protocol.split = reader.string("split", 128);
  protocol.shots = static_cast<int>(reader.integer("shots", 0, 1000));
  protocol.seed = reader.integer("seed", 0, int64_t{1} << 53);
  protocol.max_new_tokens = static_cast<int>(reader.integer("max_new_tokens", 1, kMaxCount));
  if (reader.has("length")) {
    protocol.length = static_cast<int>(reader.integer("length", 1, kMaxCount));
  }
  KVSWEEP_TRY(reader.done());
  return protocol;
}

std::string protocol_hash(const TaskProtocol& protocol, RunMode mode) {
  const Json meaning = {{"protocol", 1}, {"task", to_json(protocol)}, {"mode", to_string(mode)}};
  return sha256_hex(canonical_json(meaning).value());
}

std::string_view to_string(Metric metric) {
  return metric_names()[static_cast<size_t>(metric)];
}

Result<Metric> metric_from(std::string_view name) {
  for (size_t i = 0; i < metric_names().size(); ++i) {
    if (metric_names()[i] == name) return static_cast<Metric>(i);
  }
  return bad_input("metric \"" + std::string(name) + "\" is not known; allowed are " +
                   join(metric_names(), ", ") + near_hint(name, metric_names()));
}

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> kNames = {"exact_match", "answer_agreement",
                                                  "token_agreement", "kl"};
  return kNames;
}

RunMode mode_of(Metric metric) {
  const bool forced = metric == Metric::token_agreement || metric == Metric::kl;
  return forced ? RunMode::forced : RunMode::generate;
}

}  // namespace kvsweep
