// Reading of one study of a spec, layer by layer. Internal to core.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/spec_task.hpp"
#include "core/study_spec.hpp"
#include "core/yaml_reader.hpp"

namespace kvsweep {

// A study while its layers are read.
struct StudyDraft {
  StudySpec spec;
  SpecTask objective;
  bool has_objective = false;
  std::string ranges_file;  // of the scheme, as written; "" = none
  std::vector<SpecTask> report;
  YAML::Mark place;                         // of the study
  std::map<std::string, YAML::Mark> marks;  // of keys that late checks are about

  YAML::Mark mark(const std::string& key) const;
};

// Keys directly under `section` of a study ("" = the study itself).
std::vector<std::string> spec_keys_of(const std::string& section);

// Problems go to `context`, the first one stays.
class StudyReader {
 public:
  StudyReader(YamlContext& context, const SpecOptions& options)
      : context_(context), options_(options) {}

  // Sets in `draft` what `node` holds. `path` stands before key names in messages.
  void apply(const YAML::Node& node, StudyDraft& draft, const std::string& path);

  // The whole study, after its last layer: what is required is there, and nothing is impossible.
  StudySpec finished(StudyDraft& draft);

  // Names become parts of "sweep/name".
  std::string checked_name(const std::string& name, YamlReader& reader, const std::string& key);

 private:
  template <typename T>
  void take(const Result<T>& result, T& out, const YAML::Mark& mark) {
    if (result.ok()) {
      out = *result;
    } else {
      context_.fail(mark, result.error().message);
    }
  }

  void apply_scheme(const YAML::Node& node, StudyDraft& draft);
  void read_group(YamlReader& reader, SchemeOptions& scheme);
  void read_variants(YamlReader& reader, SchemeOptions& scheme);
  void apply_search(const YAML::Node& node, StudyDraft& draft);
  void check_algorithm(YamlReader& reader);
  void apply_candidates(YamlReader& reader, SearchSpec& search);
  void apply_limits(const YAML::Node& node, StudyDraft& draft);
  void apply_at(const YAML::Node& node, AtSpec& at);
  void apply_report(const YAML::Node& node, StudyDraft& draft);
  void check_disjoint(const StudySpec& spec, const SpecTask& task);
  void load_ranges(StudyDraft& draft);
  void check_scheme_and_limits(const StudyDraft& draft);
  void check_candidates(const StudyDraft& draft, const Scheme& scheme);

  YamlContext& context_;
  const SpecOptions& options_;
};

}  // namespace kvsweep
