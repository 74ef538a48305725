// The YAML side of study_spec.hpp. A study is read in layers: `defaults` first, then the study
// itself, each setting only the keys it holds, which is what "merged deeply" means. What needs the
// whole (required keys, impossible limits) is checked at the end, at the place of the key it is
// about.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/file.hpp"
#include "core/spec_limits.hpp"
#include "core/spec_task.hpp"
#include "core/study_spec.hpp"
#include "core/text.hpp"
#include "core/yaml_reader.hpp"

namespace kvsweep {
namespace {

constexpr size_t kMaxFileBytes = 4 << 20;
constexpr size_t kMaxStudies = 10'000;

const std::vector<std::string> kSweepKeys = {"sweep", "defaults", "studies"};

// Keys directly under `section` ("" = the study itself).
std::vector<std::string> keys_of(const std::string& section) {
  std::vector<std::string> keys;
  const std::string prefix = section.empty() ? "" : section + ".";
  for (const SpecKey& key : spec_keys()) {
    if (key.path.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string name = split(key.path.substr(prefix.size()), '.')[0];
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) keys.push_back(name);
  }
  return keys;
}

// A study while its layers are read.
struct Draft {
  StudySpec spec;
  SpecTask objective;
  bool has_objective = false;
  std::vector<SpecTask> report;
  YAML::Mark place;                         // of the study
  std::map<std::string, YAML::Mark> marks;  // of keys that late checks are about

  YAML::Mark mark(const std::string& key) const {
    const auto it = marks.find(key);
    return it == marks.end() ? place : it->second;
  }
};

class SpecParser {
 public:
  SpecParser(std::string where, const SpecOptions& options) : options_(options) {
    context_.where = std::move(where);
  }

  Result<SweepSpec> parse(const std::string& yaml) {
    KVSWEEP_ASSIGN(const YAML::Node root, load(yaml));
    SweepSpec sweep;
    if (is_sweep(root)) {
      read_sweep(root, sweep);
    } else {
      Draft draft;
      apply(root, draft, "");
      sweep.studies.push_back(finished(draft));
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
    if (const auto name = reader.text("sweep")) sweep.name = checked_name(*name, reader, "sweep");
    if (!reader.has("sweep")) {
      context_.fail(reader.mark(), "a spec with \"studies\" needs a name in \"sweep\"");
    }
    Draft defaults;
    if (reader.has("defaults")) {
      apply(reader.get("defaults"), defaults, "defaults");
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
    const std::vector<std::string> study_keys = keys_of("");
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

  void read_studies(YamlReader& reader, const Draft& defaults, SweepSpec& sweep) {
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
      Draft draft = defaults;
      apply(studies[i], draft, fmt::format("studies[{}]", i));
      sweep.studies.push_back(finished(draft));
      if (!names.insert(draft.spec.name).second) {
        context_.fail(
            draft.mark("name"),
            fmt::format("two studies are called \"{}\"; give each its own name", draft.spec.name));
      }
    }
  }

  std::string checked_name(const std::string& name, YamlReader& reader, const std::string& key) {
    if (name.size() > kMaxNameBytes || name.find('/') != std::string::npos) {
      reader.fail(key, fmt::format("must be at most {} characters without \"/\"", kMaxNameBytes));
    }
    return name;
  }

  // Sets in `draft` what `node` holds. `path` stands before key names in messages.
  void apply(const YAML::Node& node, Draft& draft, const std::string& path) {
    YamlReader reader(node, path, keys_of(""), context_);
    draft.place = reader.mark();
    if (!node.IsMap()) return;
    for (const std::string& key : keys_of("")) {
      if (reader.has(key)) draft.marks.insert_or_assign(key, reader.mark(key));
    }
    if (const auto name = reader.text("name")) {
      draft.spec.name = checked_name(*name, reader, "name");
    }
    if (const auto model = reader.text("model")) draft.spec.model = *model;
    if (const auto base = reader.text("baseline_kv")) {
      take(base_type_from(*base), draft.spec.baseline_kv, reader.mark("baseline_kv"));
    }
    if (reader.has("scheme")) apply_scheme(reader.get("scheme"), draft.spec.scheme);
    if (reader.has("search")) apply_search(reader.get("search"), draft);
    if (reader.has("limits")) apply_limits(reader.get("limits"), draft);
    if (reader.has("at")) apply_at(reader.get("at"), draft.spec.at);
    if (reader.has("objective_task")) {
      draft.has_objective = true;
      draft.objective.apply(reader.get("objective_task"), "objective_task",
                            keys_of("objective_task"), context_);
    }
    if (reader.has("report_tasks")) apply_report(reader.get("report_tasks"), draft);
  }

  template <typename T>
  void take(const Result<T>& result, T& out, const YAML::Mark& mark) {
    if (result.ok()) {
      out = *result;
    } else {
      context_.fail(mark, result.error().message);
    }
  }

  // A text is the scheme with its own defaults; a map changes what it holds, and a new name in it
  // starts from that scheme's defaults.
  void apply_scheme(const YAML::Node& node, SchemeOptions& scheme) {
    if (node.IsScalar()) {
      scheme = {};
      scheme.name = node.Scalar();
      return;
    }
    YamlReader reader(node, "scheme", keys_of("scheme"), context_);
    if (const auto name = reader.text("name"); name && *name != scheme.name) {
      scheme = {};
      scheme.name = *name;
    }
    if (reader.has("group")) read_group(reader, scheme);
    if (const auto residual = reader.integer("residual", 0, 1 << 20)) {
      scheme.residual = static_cast<int>(*residual);
    }
    if (const auto prefill = reader.text("prefill")) {
      Prefill value{};
      take(prefill_from(*prefill), value, reader.mark("prefill"));
      scheme.prefill = value;
    }
  }

  void read_group(YamlReader& reader, SchemeOptions& scheme) {
    const std::string text = reader.text("group").value_or("");
    for (const int group : {32, 64, 128}) {
      if (text == std::to_string(group)) scheme.group = group;
    }
    if (text == "head") scheme.group = 0;
    if (text != "head" && text != "32" && text != "64" && text != "128") {
      reader.fail("group", fmt::format("is {}; allowed are 32, 64, 128 and head",
                                       shown(reader.get("group"))));
    }
  }

  void apply_search(const YAML::Node& node, Draft& draft) {
    SearchSpec& search = draft.spec.search;
    YamlReader reader(node, "search", keys_of("search"), context_);
    if (const auto algorithm = reader.text("algorithm")) {
      search.algorithm = *algorithm;
      check_algorithm(reader);
    }
    reader.read("trials", search.trials, 1, kMaxTrials);
    reader.read("population", search.population, 2, kMaxPopulation);
    reader.read("seed", search.seed, 0, kMaxSeed);
    reader.read("groups", search.groups, 1, kMaxGroups);
    if (reader.has("candidates")) apply_candidates(reader, search);
  }

  void check_algorithm(YamlReader& reader) {
    const std::vector<std::string>& known = options_.algorithms;
    const std::string name = reader.get("algorithm").Scalar();
    if (known.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
    const std::string near = nearest_word(name, known);
    reader.fail("algorithm", fmt::format("is \"{}\"; allowed are {}{}", name, join(known, ", "),
                                         near.empty() ? "" : " (did you mean " + near + "?)"));
  }

  void apply_candidates(YamlReader& reader, SearchSpec& search) {
    const YAML::Node list = reader.get("candidates");
    if (!list.IsSequence() || list.size() == 0) {
      reader.fail("candidates", "must be a list of at least one pair, such as [K8V4, K4V2]");
      return;
    }
    search.candidates.clear();
    for (const YAML::Node& item : list) {
      if (!item.IsScalar()) {
        context_.fail(item.Mark(),
                      "a candidate must be a pair such as K8V4, but it is " + shown(item));
        return;
      }
      Pair pair;
      take(pair_from(item.Scalar()), pair, item.Mark());
      if (std::find(search.candidates.begin(), search.candidates.end(), pair) !=
          search.candidates.end()) {
        context_.fail(item.Mark(), fmt::format("candidate {} is listed twice", to_string(pair)));
      }
      search.candidates.push_back(pair);
    }
  }

  void apply_limits(const YAML::Node& node, Draft& draft) {
    YamlReader reader(node, "limits", keys_of("limits"), context_);
    for (const char* key : {"max_bits", "max_loss"}) {
      if (reader.has(key)) draft.marks.insert_or_assign(key, reader.mark(key));
    }
    if (const auto bits = reader.number("max_bits", 0, kMaxBits)) {
      draft.spec.limits.max_bits = *bits;
    }
    if (const auto loss = reader.number("max_loss", 0, kMaxKlLoss)) {
      draft.spec.limits.max_loss = *loss;
    }
  }

  void apply_at(const YAML::Node& node, AtSpec& at) {
    YamlReader reader(node, "at", keys_of("at"), context_);
    reader.read("context", at.context, 1, kMaxContext);
    reader.read("batch", at.batch, 1, kMaxBatch);
  }

  void apply_report(const YAML::Node& node, Draft& draft) {
    if (!node.IsSequence() || node.size() > kMaxReportTasks) {
      context_.fail(node.Mark(), fmt::format("\"report_tasks\" must be a list of at most {} tasks, "
                                             "such as [{{name: gsm8k, split: test}}]",
                                             kMaxReportTasks));
      return;
    }
    draft.report.assign(node.size(), {});
    for (size_t i = 0; i < node.size(); ++i) {
      draft.report[i].apply(node[i], fmt::format("report_tasks[{}]", i), keys_of("objective_task"),
                            context_);
    }
  }

  StudySpec finished(Draft& draft) {
    StudySpec& spec = draft.spec;
    if (context_.error) return spec;
    for (const auto& [key, value] : {std::pair{"name", &spec.name}, {"model", &spec.model}}) {
      if (value->empty()) context_.fail(draft.place, fmt::format("key \"{}\" is missing", key));
    }
    if (!draft.has_objective) {
      context_.fail(draft.place,
                    "key \"objective_task\" is missing; for example "
                    "{name: gsm8k, metric: exact_match}");
    }
    if (context_.error) return spec;
    spec.objective_task = draft.objective.finished(context_);
    for (const SpecTask& task : draft.report) {
      spec.report_tasks.push_back(task.finished(context_));
      check_disjoint(spec, task);
    }
    check_scheme_and_limits(draft);
    return spec;
  }

  // The report must rest on data that the search has not seen.
  void check_disjoint(const StudySpec& spec, const SpecTask& task) {
    const TaskProtocol& search = spec.objective_task.protocol;
    const TaskProtocol& report = spec.report_tasks.back().protocol;
    if (search.name != report.name || search.split != report.split || search.seed != report.seed) {
      return;
    }
    context_.fail(task.place,
                  fmt::format("this report task uses the data of the search ({}, split {}); report "
                              "on another split or seed",
                              report.name, report.split));
  }

  void check_scheme_and_limits(const Draft& draft) {
    const Result<Scheme> scheme = make_scheme(draft.spec.scheme);
    if (!scheme.ok()) {
      context_.fail(draft.mark("scheme"), scheme.error().message);
      return;
    }
    check_max_bits(draft, *scheme);
    const bool unbounded = draft.spec.objective_task.metric == Metric::kl;
    if (draft.spec.limits.max_loss.value_or(0) > 1 && !unbounded) {
      context_.fail(
          draft.mark("max_loss"),
          fmt::format("\"limits.max_loss\" is {}; a loss of {} lies between 0 and 1",
                      *draft.spec.limits.max_loss, to_string(draft.spec.objective_task.metric)));
    }
  }

  // Code bits, and 32 bits of scale and minimum for each full group: what a side costs at least,
  // whatever the model and the window.
  static double least_bits(const Format& format, BaseType base) {
    if (!format.quantized()) return 8.0 * bytes_of(base);
    return info(format.codec).bits + (format.group > 0 ? 32.0 / format.group : 0.0);
  }

  void check_max_bits(const Draft& draft, const Scheme& scheme) {
    if (!draft.spec.limits.max_bits) return;
    std::vector<Pair> candidates = draft.spec.search.candidates;
    if (candidates.empty()) candidates = {{Codec::int2, Codec::int2}};
    double least = kMaxBits;
    Pair cheapest;
    for (const Pair& pair : candidates) {
      const double bits = (least_bits(scheme.key_format(pair.k), draft.spec.baseline_kv) +
                           least_bits(scheme.value_format(pair.v), draft.spec.baseline_kv)) /
                          2;
      if (bits < least) cheapest = pair;
      least = std::min(least, bits);
    }
    if (*draft.spec.limits.max_bits >= least) return;
    context_.fail(draft.mark("max_bits"),
                  fmt::format("\"limits.max_bits\" is {}, but the cheapest candidate {} already "
                              "takes {} effective bits; raise the limit or add a cheaper pair",
                              *draft.spec.limits.max_bits, to_string(cheapest), least));
  }

  YamlContext context_;
  const SpecOptions& options_;
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
