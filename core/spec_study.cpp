#include "core/spec_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/spec_limits.hpp"
#include "core/text.hpp"

namespace kvsweep {
YAML::Mark StudyDraft::mark(const std::string& key) const {
  const auto it = marks.find(key);
  return it == marks.end() ? place : it->second;
}

std::vector<std::string> spec_keys_of(const std::string& section) {
  std::vector<std::string> keys;
  const std::string prefix = section.empty() ? "" : section + ".";
  for (const SpecKey& key : spec_keys()) {
    if (key.path.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string name = split(key.path.substr(prefix.size()), '.')[0];
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) keys.push_back(name);
  }
  return keys;
}

std::string StudyReader::checked_name(const std::string& name, YamlReader& reader,
                                      const std::string& key) {
  if (name.size() > kMaxNameBytes || name.find('/') != std::string::npos) {
    reader.fail(key, fmt::format("must be at most {} characters without \"/\"", kMaxNameBytes));
  }
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), control)) {
    reader.fail(key, "holds a control character; use only characters that print");
  }
  return name;
}

void StudyReader::apply(const YAML::Node& node, StudyDraft& draft, const std::string& path) {
  YamlReader reader(node, path, spec_keys_of(""), context_);
  draft.place = reader.mark();
  if (!node.IsMap()) return;
  for (const std::string& key : spec_keys_of("")) {
    if (reader.has(key)) draft.marks.insert_or_assign(key, reader.mark(key));
  }
  if (const auto name = reader.text("name")) {
    draft.spec.name = checked_name(*name, reader, "name");
  }
  if (const auto model = reader.text("model")) draft.spec.model = *model;
  if (const auto base = reader.text("baseline_kv")) {
    take(base_type_from(*base), draft.spec.baseline_kv, reader.mark("baseline_kv"));
  }
  if (reader.has("scheme")) apply_scheme(reader.get("scheme"), draft);
  if (reader.has("search")) apply_search(reader.get("search"), draft);
  if (reader.has("limits")) apply_limits(reader.get("limits"), draft);
  if (reader.has("at")) apply_at(reader.get("at"), draft.spec.at);
  if (reader.has("objective_task")) {
    draft.has_objective = true;
    draft.objective.apply(reader.get("objective_task"), "objective_task",
                          spec_keys_of("objective_task"), context_);
  }
  if (reader.has("report_tasks")) apply_report(reader.get("report_tasks"), draft);
}

// A text is the scheme with its own defaults; a map changes what it holds, and a new name in it
// starts from that scheme's defaults.
void StudyReader::apply_scheme(const YAML::Node& node, StudyDraft& draft) {
  SchemeOptions& scheme = draft.spec.scheme;
  if (node.IsScalar()) {
    scheme = {};
    draft.ranges_file.clear();
    scheme.name = node.Scalar();
    return;
  }
  YamlReader reader(node, "scheme", spec_keys_of("scheme"), context_);
  if (const auto name = reader.text("name"); name && *name != scheme.name) {
    scheme = {};
    draft.ranges_file.clear();
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
  if (const auto file = reader.text("ranges")) {
    draft.ranges_file = *file;
    draft.marks.insert_or_assign("ranges", reader.mark("ranges"));
  }
  read_variants(reader, scheme);
}

void StudyReader::read_variants(YamlReader& reader, SchemeOptions& scheme) {
  if (const auto share = reader.number("share", 0.1, 0.9)) {
    scheme.share = static_cast<int>(std::lround(*share * 10));
    if (std::abs(*share * 10 - *scheme.share) > 1e-6) {
      reader.fail("share", fmt::format("is {}; it must be 0.1, 0.2 ... or 0.9", *share));
    }
  }
  if (const auto sinks = reader.integer("sinks", 0, kMaxSinks)) {
    scheme.sinks = static_cast<int>(*sinks);
  }
  if (const auto symmetric = reader.text("symmetric")) {
    if (*symmetric != "true" && *symmetric != "false") {
      reader.fail("symmetric", "is \"" + *symmetric + "\"; allowed are true and false");
    }
    scheme.symmetric = *symmetric == "true";
  }
  if (const auto hadamard = reader.text("hadamard")) {
    Hadamard value{};
    take(hadamard_from(*hadamard), value, reader.mark("hadamard"));
    scheme.hadamard = value;
  }
  if (const auto bias = reader.text("key_bias")) {
    KeyBias value{};
    take(key_bias_from(*bias), value, reader.mark("key_bias"));
    scheme.key_bias = value;
  }
}

void StudyReader::read_group(YamlReader& reader, SchemeOptions& scheme) {
  const std::string text = reader.text("group").value_or("");
  for (const int group : {32, 64, 128}) {
    if (text == std::to_string(group)) scheme.group = group;
  }
  if (text == "head") scheme.group = 0;
  if (text != "head" && text != "32" && text != "64" && text != "128") {
    reader.fail("group",
                fmt::format("is {}; allowed are 32, 64, 128 and head", shown(reader.get("group"))));
  }
}

void StudyReader::apply_search(const YAML::Node& node, StudyDraft& draft) {
  SearchSpec& search = draft.spec.search;
  YamlReader reader(node, "search", spec_keys_of("search"), context_);
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

void StudyReader::check_algorithm(YamlReader& reader) {
  const std::vector<std::string>& known = options_.algorithms;
  const std::string name = reader.get("algorithm").Scalar();
  if (known.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string near = nearest_word(name, known);
  reader.fail("algorithm", fmt::format("is \"{}\"; allowed are {}{}", name, join(known, ", "),
                                       near.empty() ? "" : " (did you mean " + near + "?)"));
}

void StudyReader::apply_candidates(YamlReader& reader, SearchSpec& search) {
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

void StudyReader::apply_limits(const YAML::Node& node, StudyDraft& draft) {
  YamlReader reader(node, "limits", spec_keys_of("limits"), context_);
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

void StudyReader::apply_at(const YAML::Node& node, AtSpec& at) {
  YamlReader reader(node, "at", spec_keys_of("at"), context_);
  reader.read("context", at.context, 1, kMaxContext);
  reader.read("batch", at.batch, 1, kMaxBatch);
}

void StudyReader::apply_report(const YAML::Node& node, StudyDraft& draft) {
  if (!node.IsSequence() || node.size() > kMaxReportTasks) {
    context_.fail(node.Mark(), fmt::format("\"report_tasks\" must be a list of at most {} tasks, "
                                           "such as [{{name: gsm8k, split: test}}]",
                                           kMaxReportTasks));
    return;
  }
  draft.report.assign(node.size(), {});
  for (size_t i = 0; i < node.size(); ++i) {
    draft.report[i].apply(node[i], fmt::format("report_tasks[{}]", i),
                          spec_keys_of("objective_task"), context_);
  }
}

StudySpec StudyReader::finished(StudyDraft& draft) {
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
  load_ranges(draft);
  if (!context_.error) check_scheme_and_limits(draft);
  return spec;
}

// Relative paths count from the folder of the spec.
void StudyReader::load_ranges(StudyDraft& draft) {
  if (draft.ranges_file.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(context_.where).parent_path();
  const auto observed = read_ranges_file((folder / draft.ranges_file).string());
  const Status set = observed.ok() ? set_ranges(*observed, draft.spec.scheme) : observed.error();
  if (!set.ok()) context_.fail(draft.mark("ranges"), set.error().message);
}

// The report must rest on data that the search has not seen.
void StudyReader::check_disjoint(const StudySpec& spec, const SpecTask& task) {
  const TaskProtocol& search = spec.objective_task.protocol;
  const TaskProtocol& report = spec.report_tasks.back().protocol;
  const bool halves = !search.rows.empty() && !report.rows.empty() && search.rows != report.rows;
  if (halves || search.name != report.name || search.split != report.split ||
      search.seed != report.seed) {
    return;
  }
  context_.fail(
      task.place,
      fmt::format("this report task uses the data of the search ({}, split {}); report "
                  "on another split or seed, or give one rows: search and the other rows: "
                  "report",
                  report.name, report.split));
}

void StudyReader::check_scheme_and_limits(const StudyDraft& draft) {
  const Result<Scheme> scheme = make_scheme(draft.spec.scheme);
  if (!scheme.ok()) {
    context_.fail(draft.mark("scheme"), scheme.error().message);
    return;
  }
  check_candidates(draft, *scheme);
  const std::vector<Pair>& listed = draft.spec.search.candidates;
  const Status matter = check_options_matter(draft.spec.scheme,
                                             listed.empty() ? default_candidates(*scheme) : listed);
  if (!matter.ok()) context_.fail(draft.mark("scheme"), matter.error().message);
  const bool unbounded = !bounded(draft.spec.objective_task.metric);
  if (draft.spec.limits.max_loss.value_or(0) > 1 && !unbounded) {
    context_.fail(
        draft.mark("max_loss"),
        fmt::format("\"limits.max_loss\" is {}; a loss of {} lies between 0 and 1",
                    *draft.spec.limits.max_loss, to_string(draft.spec.objective_task.metric)));
  }
}

void StudyReader::check_candidates(const StudyDraft& draft, const Scheme& scheme) {
  for (const Pair& pair : draft.spec.search.candidates) {
    const std::string objection = scheme.objection(pair);
    if (objection.empty()) continue;
    context_.fail(draft.mark("search"),
                  fmt::format("\"search.candidates\" holds {}, but {}; see `kvsweep list codecs`",
                              to_string(pair), objection));
    return;
  }
}

}  // namespace kvsweep
