// A task of a study spec while its YAML layers are read; what it leaves open comes from the
// catalog. Internal to core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/study_spec.hpp"
#include "core/yaml_reader.hpp"

namespace kvsweep {

struct SpecTask {
  std::string name;
  std::optional<int64_t> shots;
  std::optional<std::string> split;
  std::optional<int64_t> seed;
  std::optional<int64_t> examples;
  std::optional<int64_t> max_new_tokens;
  std::optional<int64_t> length;
  std::optional<std::string> form;
  std::optional<int64_t> prompt_limit;  // key "context"
  std::optional<std::string> rows;
  std::optional<std::string> metric;
  std::string path;  // "objective_task", for messages
  YAML::Mark place;
  YAML::Mark name_mark, split_mark, seed_mark, length_mark, metric_mark, form_mark, rows_mark;

  // Sets what `node` holds: a text is a name, a map any of `known`. A new name forgets what was
  // set for the old one.
  void apply(const YAML::Node& node, const std::string& where, std::vector<std::string> known,
             YamlContext& context);

  // The whole task; problems go to `context`.
  TaskSpec finished(YamlContext& context) const;

 private:
  void rename(const std::string& new_name);
};

}  // namespace kvsweep
