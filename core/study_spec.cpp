#include "core/study_spec.hpp"

#include <algorithm>

#include "core/json_reader.hpp"
#include "core/spec_limits.hpp"
#include "core/text.hpp"

namespace kvsweep {
namespace {

Json to_json(const SearchSpec& search) {
  Json candidates = Json::array();
  for (const Pair& pair : search.candidates) candidates.push_back(to_string(pair));
  return {{"algorithm", search.algorithm},   {"trials", search.trials},
          {"population", search.population}, {"seed", search.seed},
          {"groups", search.groups},         {"candidates", std::move(candidates)}};
}

Json to_json(const LimitsSpec& limits) {
  Json json = Json::object();
  if (limits.max_bits) json["max_bits"] = *limits.max_bits;
  if (limits.max_loss) json["max_loss"] = *limits.max_loss;
  return json;
}

Json to_json(const TaskSpec& task) {
  return {{"protocol", kvsweep::to_json(task.protocol)},
          {"examples", task.examples},
          {"metric", to_string(task.metric)}};
}

Result<SearchSpec> search_from_json(const Json& json) {
  JsonReader reader(json, "study search");
  SearchSpec search;
  search.algorithm = reader.string("algorithm", kMaxNameBytes);
  search.trials = reader.integer("trials", 1, kMaxTrials);
  search.population = static_cast<int>(reader.integer("population", 2, kMaxPopulation));
  search.seed = static_cast<uint64_t>(reader.integer("seed", 0, kMaxSeed));
  search.groups = static_cast<int>(reader.integer("groups", 1, kMaxGroups));
  for (const std::string& name : reader.strings("candidates", 16, 1024)) {
    search.candidates.push_back(reader.take(pair_from(name)));
  }
  KVSWEEP_TRY(reader.done());
  return search;
}

Result<TaskSpec> task_from_json(const Json& json) {
  JsonReader reader(json, "study task");
  TaskSpec task;
  if (const Json* protocol = reader.object("protocol")) {
    task.protocol = reader.take(task_protocol_from_json(*protocol));
  }
  task.examples = reader.integer("examples", 0, kMaxExamples);
  task.metric = reader.take(metric_from(reader.string("metric", kMaxNameBytes)));
  KVSWEEP_TRY(reader.done());
  return task;
}

void read_limits(JsonReader& parent, LimitsSpec& limits) {
  const Json* json = parent.object("limits");
  if (json == nullptr) return;
  JsonReader reader(*json, "study limits");
  limits.max_bits = reader.optional_number("max_bits", 0, kMaxBits);
  limits.max_loss = reader.optional_number("max_loss", 0, kMaxKlLoss);
  if (const Status status = reader.done(); !status.ok()) parent.fail(status.error());
}

void read_at(JsonReader& parent, AtSpec& at) {
  const Json* json = parent.object("at");
  if (json == nullptr) return;
  JsonReader reader(*json, "study at");
  at.context = reader.integer("context", 1, kMaxContext);
  at.batch = reader.integer("batch", 1, kMaxBatch);
  if (const Status status = reader.done(); !status.ok()) parent.fail(status.error());
}

Status in_range(const char* key, const std::optional<int64_t>& value, int64_t low, int64_t high) {
  if (!value || (*value >= low && *value <= high)) return {};
  return bad_input(std::string(key) + " is " + std::to_string(*value) +
                   "; it must be a whole number from " + std::to_string(low) + " to " +
                   std::to_string(high));
}

}  // namespace

namespace {

Status check_listed(const std::string& task, const char* what, const std::string& value,
                    std::string_view list) {
  const std::vector<std::string> known = split(list, ',');
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  const std::string near = nearest_word(value, known);
  return bad_input("task " + task + " has no " + what + " \"" + value + "\"; allowed are " +
                   join(known, ", ") + (near.empty() ? "" : " (did you mean " + near + "?)"));
}

Status check_metric(const TaskInfo& info, Metric metric) {
  if (measures(info.kind, metric)) return {};
  std::vector<std::string> allowed;
  for (const std::string& name : metric_names()) {
    if (measures(info.kind, *metric_from(name))) allowed.push_back(name);
  }
  return bad_input("task " + std::string(info.name) + " does not measure " +
                   std::string(to_string(metric)) + "; allowed are " + join(allowed, ", "));
}

Status check_numbers(const TaskOptions& options, const TaskInfo& info) {
  if (!info.seeded && options.seed.value_or(0) != 0) {
    return bad_input("task " + options.name +
                     " is read from a data set, so a seed has no meaning; remove it");
  }
  if (options.length && info.length == 0) {
    return bad_input("task " + options.name +
                     " has prompts of its own length, so a length has no meaning; "
                     "remove it");
  }
  KVSWEEP_TRY(in_range("length", options.length, 1, kMaxLength));
  KVSWEEP_TRY(in_range("shots", options.shots, 0, kMaxShots));
  KVSWEEP_TRY(in_range("seed", options.seed, 0, kMaxSeed));
  KVSWEEP_TRY(in_range("context", options.context, 0, kMaxLength));
  KVSWEEP_TRY(in_range("max_new_tokens", options.max_new_tokens, 1, kMaxNewTokens));
  return in_range("examples", options.examples, 0, kMaxExamples);
}

}  // namespace

Status check_split(const std::string& task, const std::string& split_name) {
  KVSWEEP_ASSIGN(const TaskInfo info, task_info(task));
  return check_listed(task, "split", split_name, info.splits);
}

Status check_form(const std::string& task, const std::string& form) {
  KVSWEEP_ASSIGN(const TaskInfo info, task_info(task));
  return check_listed(task, "form", form, info.forms);
}

Result<TaskSpec> make_task(const TaskOptions& options) {
  KVSWEEP_ASSIGN(const TaskInfo info, task_info(options.name));
  TaskSpec task;
  task.metric = info.kind == RunMode::rolling ? Metric::nll : Metric::exact_match;
  if (options.metric) {
    KVSWEEP_ASSIGN(task.metric, metric_from(*options.metric));
  }
  KVSWEEP_TRY(check_metric(info, task.metric));
  TaskProtocol& protocol = task.protocol;
  protocol.split = options.split.value_or(split(info.splits, ',')[0]);
  KVSWEEP_TRY(check_split(options.name, protocol.split));
  const std::string form = options.form.value_or(split(info.forms, ',')[0]);
  KVSWEEP_TRY(check_form(options.name, form));
  KVSWEEP_ASSIGN(protocol.form, task_form_from(form));
  KVSWEEP_TRY(check_numbers(options, info));
  protocol.name = options.name;
  protocol.version = info.version;
  protocol.shots = static_cast<int>(options.shots.value_or(info.default_shots));
  protocol.seed = options.seed.value_or(0);
  protocol.max_new_tokens = static_cast<int>(options.max_new_tokens.value_or(info.max_new_tokens));
  protocol.length = static_cast<int>(options.length.value_or(info.length));
  protocol.context = static_cast<int>(options.context.value_or(0));
  if (options.rows && *options.rows != "all") {
    KVSWEEP_TRY(check_listed(options.name, "rows", *options.rows, "search,report"));
    protocol.rows = *options.rows;
  }
  task.examples = options.examples.value_or(0);
  return task;
}

Json to_json(const StudySpec& spec) {
  Json report = Json::array();
  for (const TaskSpec& task : spec.report_tasks) report.push_back(to_json(task));
  return {{"name", spec.name},
          {"model", spec.model},
          {"scheme", to_json(spec.scheme)},
          {"baseline_kv", to_string(spec.baseline_kv)},
          {"search", to_json(spec.search)},
          {"limits", to_json(spec.limits)},
          {"at", {{"context", spec.at.context}, {"batch", spec.at.batch}}},
          {"objective_task", to_json(spec.objective_task)},
          {"report_tasks", std::move(report)}};
}

Result<StudySpec> study_spec_from_json(const Json& json) {
  JsonReader reader(json, "study");
  StudySpec spec;
  spec.name = reader.string("name", kMaxNameBytes);
  spec.model = reader.string("model", 4096);
  if (const Json* scheme = reader.object("scheme")) {
    spec.scheme = reader.take(scheme_options_from_json(*scheme));
  }
  spec.baseline_kv = reader.take(base_type_from(reader.string("baseline_kv", 16)));
  if (const Json* search = reader.object("search")) {
    spec.search = reader.take(search_from_json(*search));
  }
  read_limits(reader, spec.limits);
  read_at(reader, spec.at);
  if (const Json* task = reader.object("objective_task")) {
    spec.objective_task = reader.take(task_from_json(*task));
  }
  if (const Json* tasks = reader.array("report_tasks", kMaxReportTasks)) {
    for (const Json& task : *tasks) spec.report_tasks.push_back(reader.take(task_from_json(task)));
  }
  KVSWEEP_TRY(reader.done());
  return spec;
}

const std::vector<SpecKey>& spec_keys() {
  static const std::vector<SpecKey> kKeys = {
#define KVSWEEP_SPEC_KEY(path, type, fallback, meaning) {path, type, fallback, meaning},
#include "core/catalog/spec_keys.def"
#undef KVSWEEP_SPEC_KEY
  };
  return kKeys;
}

}  // namespace kvsweep
