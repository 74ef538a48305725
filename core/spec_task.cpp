#include "core/spec_task.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/spec_limits.hpp"
#include "core/text.hpp"

namespace kvsweep {

void SpecTask::rename(const std::string& new_name) {
  if (new_name == name) return;
  *this = {};
  name = new_name;
}

void SpecTask::apply(const YAML::Node& node, const std::string& where,
                     std::vector<std::string> known, YamlContext& context) {
  if (node.IsScalar()) {
    rename(node.Scalar());
    path = where;
    place = name_mark = node.Mark();
    return;
  }
  YamlReader reader(node, where, std::move(known), context);
  if (const auto text = reader.text("name")) {
    rename(*text);
    name_mark = reader.mark("name");
  }
  path = where;
  place = node.Mark();
  const auto read = [&](const char* key, std::optional<int64_t>& out, int64_t low, int64_t high) {
    if (const auto value = reader.integer(key, low, high)) out = value;
  };
  read("shots", shots, 0, kMaxShots);
  read("seed", seed, 0, kMaxSeed);
  read("examples", examples, 0, kMaxExamples);
  read("max_new_tokens", max_new_tokens, 1, kMaxNewTokens);
  read("length", length, 1, kMaxLength);
  read("context", prompt_limit, 0, kMaxLength);
  if (const auto text = reader.text("split")) split = text;
  if (const auto text = reader.text("form")) form = text;
  if (const auto text = reader.text("rows")) rows = text;
  if (const auto text = reader.text("metric")) metric = text;
  if (reader.has("seed")) seed_mark = reader.mark("seed");
  if (reader.has("length")) length_mark = reader.mark("length");
  if (reader.has("split")) split_mark = reader.mark("split");
  if (reader.has("form")) form_mark = reader.mark("form");
  if (reader.has("rows")) rows_mark = reader.mark("rows");
  if (reader.has("metric")) metric_mark = reader.mark("metric");
}

TaskSpec SpecTask::finished(YamlContext& context) const {
  TaskSpec task;
  if (name.empty()) {
    context.fail(place, fmt::format("key \"{}.name\" is missing", path));
    return task;
  }
  const TaskOptions options{.name = name,
                            .shots = shots,
                            .split = split,
                            .seed = seed,
                            .max_new_tokens = max_new_tokens,
                            .length = length,
                            .form = form,
                            .context = prompt_limit,
                            .rows = rows,
                            .examples = examples,
                            .metric = metric};
  const Result<TaskSpec> made = make_task(options);
  if (made.ok()) return *made;
  YAML::Mark mark = place;
  if (!task_info(name).ok()) {
    mark = name_mark;
  } else if (metric && (!metric_from(*metric).ok() ||
                        !measures(task_info(name)->kind, *metric_from(*metric)))) {
    mark = metric_mark;
  } else if (split && !check_split(name, *split).ok()) {
    mark = split_mark;
  } else if (form && !check_form(name, *form).ok()) {
    mark = form_mark;
  } else if (rows && *rows != "all" && *rows != "search" && *rows != "report") {
    mark = rows_mark;
  } else if (length && task_info(name)->length == 0) {
    mark = length_mark;
  } else if (seed) {
    mark = seed_mark;
  }
  context.fail(mark, made.error().message);
  return task;
}

}  // namespace kvsweep
