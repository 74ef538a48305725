// The YAML side of study_spec.hpp. A study is read in layers: `defaults` first, then the study
// itself, each setting only the keys it holds, which is what "merged deeply" means. What needs the
// whole (required keys, impossible limits) is checked at the end, at the place of the key it is
// about.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/file.hpp"
#include "core/spec_study.hpp"
#include "core/study_spec.hpp"
#include "core/text.hpp"
#include "core/yaml_reader.hpp"

namespace kvsweep {
namespace {

constexpr size_t kMaxFileBytes = 4 << 20;
constexpr size_t kMaxStudies = 10'000;

const std::vector<std::string> kSweepKeys = {"sweep", "defaults", "studies"};

class SpecParser {
 public:
  SpecParser(std::string where, const SpecOptions& options) : study_(context_, options) {
    context_.where = std::move(where);
  }

  Result<SweepSpec> parse(const std::string& yaml) {
    KVSWEEP_ASSIGN(const YAML::Node root, load(yaml));
    SweepSpec sweep;
    if (is_sweep(root)) {
      read_sweep(root, sweep);
    } else {
      StudyDraft draft;
      study_.apply(root, draft, "");
      sweep.studies.push_back(study_.finished(draft));
    }
    if (context_.error) return *context_.error;
    return sweep;
  }

 private:
  Result<YAML::Node> load(const std::string& yaml) {
    if (yaml.size() > kMaxFileBytes) {
      return bad_input(fmt::format("{}: the file has {} bytes; a spec has at most {}",
                                   context_.where, yaml.size(), kMaxFileBytes));
    }
    try {
      const std::vector<YAML::Node> documents = YAML::LoadAll(yaml);
      if (documents.size() == 1 && !documents[0].IsNull()) return documents[0];
      return bad_input(context_.where + (documents.size() > 1
                                             ? ": holds several YAML documents; keep one"
                                             : ": the file is empty; see `kvsweep check --keys`"));
    } catch (const YAML::Exception& error) {
      context_.fail(error.mark.is_null() ? YAML::Mark() : error.mark,
                    "not valid YAML: " + error.msg);
      return *context_.error;
    }
  }

  static bool is_sweep(const YAML::Node& root) {
    if (!root.IsMap()) return false;
    return std::any_of(kSweepKeys.begin(), kSweepKeys.end(),
                       [&](const std::string& key) { return root[key].IsDefined(); });
  }

  void read_sweep(const YAML::Node& root, SweepSpec& sweep) {
    report_misplaced(root);
    YamlReader reader(root, "", kSweepKeys, context_);
    if (const auto name = reader.text("sweep"))
      sweep.name = study_.checked_name(*name, reader, "sweep");
    if (!reader.has("sweep")) {
      context_.fail(reader.mark(), "a spec with \"studies\" needs a name in \"sweep\"");
    }
    StudyDraft defaults;
    if (reader.has("defaults")) {
      study_.apply(reader.get("defaults"), defaults, "defaults");
      if (defaults.marks.count("name")) {
        context_.fail(defaults.mark("name"),
                      "\"defaults.name\" has no meaning: every study of a "
                      "sweep needs its own name; remove it");
      }
    }
    read_studies(reader, defaults, sweep);
  }

  // A study's key at the top of a sweep is a likelier slip than a mistyped sweep key.
  void report_misplaced(const YAML::Node& root) {
    const std::vector<std::string> study_keys = spec_keys_of("");
    for (const auto& member : root) {
      if (!member.first.IsScalar()) continue;
      const std::string& key = member.first.Scalar();
      if (std::find(study_keys.begin(), study_keys.end(), key) == study_keys.end()) continue;
      context_.fail(member.first.Mark(),
                    fmt::format("key \"{}\" belongs under \"defaults\" or into a study, since this "
                                "spec is a sweep",
                                key));
    }
  }

  void read_studies(YamlReader& reader, const StudyDraft& defaults, SweepSpec& sweep) {
    if (!reader.has("studies") || !reader.get("studies").IsSequence() ||
        reader.get("studies").size() == 0) {
      context_.fail(reader.mark("studies"),
                    "\"studies\" must be a list of at least one study, such as "
                    "[{name: a, model: /models/a}]");
      return;
    }
    const YAML::Node studies = reader.get("studies");
    if (studies.size() > kMaxStudies) {
      context_.fail(studies.Mark(),
                    fmt::format("\"studies\" has {} entries; at most {} are allowed",
                                studies.size(), kMaxStudies));
      return;
    }
    std::set<std::string> names;
    for (size_t i = 0; i < studies.size() && !context_.error; ++i) {
      StudyDraft draft = defaults;
      study_.apply(studies[i], draft, fmt::format("studies[{}]", i));
      sweep.studies.push_back(study_.finished(draft));
      if (!names.insert(draft.spec.name).second) {
        context_.fail(
            draft.mark("name"),
            fmt::format("two studies are called \"{}\"; give each its own name", draft.spec.name));
      }
    }
  }

  YamlContext context_;
  StudyReader study_;  // writes to context_
};

}  // namespace

Result<SweepSpec> parse_spec(const std::string& yaml, const std::string& where,
                             const SpecOptions& options) {
  try {
    return SpecParser(where, options).parse(yaml);
  } catch (const YAML::Exception& error) {
    return bad_input(where + ": not valid YAML: " + error.msg);
  }
}

Result<SweepSpec> read_spec(const std::string& path, const SpecOptions& options) {
  KVSWEEP_ASSIGN(const std::string yaml, read_file(path));
  KVSWEEP_ASSIGN(SweepSpec sweep, parse_spec(yaml, path, options));
  std::error_code ignored;
  const std::filesystem::path folder =
      std::filesystem::absolute(std::filesystem::path(path), ignored).parent_path();
  for (StudySpec& study : sweep.studies) {
    study.model = (folder / study.model).lexically_normal().string();
  }
  return sweep;
}

}  // namespace kvsweep
