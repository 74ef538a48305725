#include "core/task_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/file.hpp"
#include "core/text.hpp"
#include "core/yaml_reader.hpp"

namespace kvsweep {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
const std::vector<std::string> kKeys = {"data",   "prompt", "gold",    "golds", "choices",
                                        "answer", "stops",  "filters", "metric"};

// A text or a list of texts.
std::vector<std::string> texts(YamlReader& reader, const std::string& key) {
  std::vector<std::string> out;
  if (!reader.has(key)) return out;
  const YAML::Node node = reader.get(key);
  if (node.IsScalar()) return {node.Scalar()};
  for (const YAML::Node& item : node) {
    if (item.IsScalar()) out.push_back(item.Scalar());
  }
  if (!node.IsSequence() || out.size() != node.size()) {
    reader.fail(key, "must be a list of texts");
  }
  return out;
}

void check_known(YamlReader& reader, const std::string& key, const std::string& value,
                 const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  reader.fail(key, fmt::format("holds \"{}\"; allowed are {}", value, join(known, ", ")));
}

void check_whole(YamlReader& reader, const TaskFile& file) {
  for (const auto& [key, value] : {std::pair{"data", file.data}, {"prompt", file.prompt}}) {
    if (value.empty()) reader.fail(key, "is missing");
  }
  const int ways =
      (file.gold.empty() ? 0 : 1) + (file.golds.empty() ? 0 : 1) + (file.choices.empty() ? 0 : 1);
  if (ways != 1) reader.fail("gold", "or golds, or choices with answer: exactly one must be there");
  if (file.choices.empty() != file.answer.empty()) {
    reader.fail("answer", "and choices must be there together");
  }
}

TaskFile read(YamlReader& reader) {
  TaskFile file;
  for (const auto& [key, place] : {std::pair{"data", &file.data},
                                   {"prompt", &file.prompt},
                                   {"gold", &file.gold},
                                   {"golds", &file.golds},
                                   {"answer", &file.answer},
                                   {"choices", &file.choices},
                                   {"metric", &file.metric}}) {
    if (const auto text = reader.text(key)) *place = *text;
  }
  file.stops = texts(reader, "stops");
  file.filters = texts(reader, "filters");
  for (const std::string& filter : file.filters) {
    check_known(reader, "filters", filter, task_filters());
  }
  check_known(reader, "metric", file.metric, task_metrics());
  check_whole(reader, file);
  return file;
}

}  // namespace

const std::vector<std::string>& task_filters() {
  static const std::vector<std::string> kNames = {"strip", "first_line", "lower", "no_punctuation",
                                                  "last_number"};
  return kNames;
}

const std::vector<std::string>& task_metrics() {
  static const std::vector<std::string> kNames = {"exact_match", "contains", "qa_f1", "rouge"};
  return kNames;
}

Json to_json(const TaskFile& file) {
  return {{"prompt", file.prompt},   {"gold", file.gold},     {"golds", file.golds},
          {"choices", file.choices}, {"answer", file.answer}, {"stops", file.stops},
          {"filters", file.filters}, {"metric", file.metric}};
}

Result<TaskFile> read_task_file(const std::string& path) {
  KVSWEEP_ASSIGN(const std::string yaml, read_file(path));
  if (yaml.size() > kMaxFileBytes) {
    return bad_input(fmt::format("{}: the file has {} bytes; a task has at most {}", path,
                                 yaml.size(), kMaxFileBytes));
  }
  YamlContext context{path, std::nullopt};
  try {
    YamlReader reader(YAML::Load(yaml), "", kKeys, context);
    TaskFile file = read(reader);
    if (context.error) return *context.error;
    return file;
  } catch (const YAML::Exception& error) {
    context.fail(error.mark.is_null() ? YAML::Mark() : error.mark, "not valid YAML: " + error.msg);
    return *context.error;
  }
}

}  // namespace kvsweep
