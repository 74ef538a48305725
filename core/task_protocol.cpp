#include "core/task_protocol.hpp"

#include <algorithm>
#include <array>

#include "core/hash.hpp"
#include "core/json_reader.hpp"
#include "core/text.hpp"

namespace kvsweep {
namespace {

std::string near_hint(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? "" : " (did you mean " + near + "?)";
}

// The part of a name before the file of a family, with the slash and a star.
std::string family_of(std::string_view name) {
  const size_t slash = name.find('/');
  return slash == std::string_view::npos ? "" : std::string(name.substr(0, slash + 1)) + "*";
}

template <typename Names>
Error unknown(const char* what, std::string_view name, const Names& names) {
  const std::vector<std::string> known(names.begin(), names.end());
  return bad_input(std::string(what) + " \"" + std::string(name) + "\" is not known; allowed are " +
                   join(known, ", ") + near_hint(name, known));
}

constexpr std::array<std::string_view, 4> kModes = {"generate", "forced", "choices", "rolling"};
constexpr std::array<std::string_view, 3> kForms = {"text", "chat", "multiturn"};

}  // namespace

const std::vector<TaskInfo>& tasks() {
  static const std::vector<TaskInfo> kTable = {
#define KVSWEEP_TASK(id, task_name, ...) {.name = task_name, __VA_ARGS__},
#include "core/catalog/tasks.def"
#undef KVSWEEP_TASK
  };
  return kTable;
}

Result<TaskInfo> task_info(std::string_view name) {
  const std::string family = family_of(name);
  std::vector<std::string> names;
  for (const TaskInfo& task : tasks()) {
    const bool member = task.name == family && name.size() >= family.size();
    if ((task.name == name || member) && !name.ends_with("*")) return task;
    names.emplace_back(task.name);
  }
  return unknown("task", name, names);
}

std::string_view to_string(RunMode mode) {
  return kModes[static_cast<size_t>(mode)];
}

Result<RunMode> run_mode_from(std::string_view name) {
  const auto* at = std::find(kModes.begin(), kModes.end(), name);
  if (at == kModes.end()) return unknown("run mode", name, kModes);
  return static_cast<RunMode>(at - kModes.begin());
}

std::string_view to_string(TaskForm form) {
  return kForms[static_cast<size_t>(form)];
}

Result<TaskForm> task_form_from(std::string_view name) {
  const auto* at = std::find(kForms.begin(), kForms.end(), name);
  if (at == kForms.end()) return unknown("form", name, kForms);
  return static_cast<TaskForm>(at - kForms.begin());
}

const std::vector<std::string>& row_halves() {
  static const std::vector<std::string> kHalves = {"search", "report"};
  return kHalves;
}

Json to_json(const TaskProtocol& protocol) {
  Json json = {{"name", protocol.name},   {"version", protocol.version},
               {"split", protocol.split}, {"shots", protocol.shots},
               {"seed", protocol.seed},   {"max_new_tokens", protocol.max_new_tokens}};
  if (protocol.length != 0) json["length"] = protocol.length;
  if (protocol.form != TaskForm::text) json["form"] = to_string(protocol.form);
  if (protocol.context != 0) json["context"] = protocol.context;
  if (!protocol.rows.empty()) json["rows"] = protocol.rows;
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
  protocol.max_new_tokens = static_cast<int>(reader.integer("max_new_tokens", 0, kMaxCount));
  if (reader.has("length")) {
    protocol.length = static_cast<int>(reader.integer("length", 1, kMaxCount));
  }
  if (reader.has("form")) protocol.form = reader.take(task_form_from(reader.string("form", 32)));
  if (reader.has("context")) {
    protocol.context = static_cast<int>(reader.integer("context", 1, kMaxCount));
  }
  if (reader.has("rows")) protocol.rows = reader.string("rows", 32);
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
  return unknown("metric", name, metric_names());
}

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> kNames = {"exact_match", "answer_agreement",
                                                  "token_agreement", "kl", "nll"};
  return kNames;
}

bool bounded(Metric metric) {
  return metric != Metric::kl && metric != Metric::nll;
}

RunMode mode_of(const TaskProtocol& protocol, Metric metric) {
  if (metric == Metric::token_agreement || metric == Metric::kl) return RunMode::forced;
  const Result<TaskInfo> info = task_info(protocol.name);
  return info.ok() ? info->kind : RunMode::generate;
}

std::vector<RunMode> modes_of(const TaskProtocol& protocol) {
  const RunMode kind = mode_of(protocol, Metric::exact_match);
  if (kind == RunMode::generate) return {RunMode::generate, RunMode::forced};
  return {kind};
}

bool measures(RunMode kind, Metric metric) {
  switch (metric) {
    case Metric::exact_match:
    case Metric::answer_agreement:
      return kind != RunMode::rolling;
    case Metric::token_agreement:
    case Metric::kl:
      return kind == RunMode::generate;
    case Metric::nll:
      return kind != RunMode::generate;
  }
  return false;
}

}  // namespace kvsweep
