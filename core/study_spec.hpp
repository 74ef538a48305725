// Study and sweep specs (design §4.2): the YAML a user writes, validated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/format.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "core/scheme.hpp"
#include "core/task_protocol.hpp"

namespace kvsweep {

inline constexpr int kDefaultGroups = 8;

struct SearchSpec {
  std::string algorithm = "nsga2";
  int64_t trials = 100;  // distinct maps with a final outcome
  int population = 24;
  uint64_t seed = 1;
  // Layer groups, evenly sized runs of neighbouring layers; the default is also right for models
  // that have fewer layers.
  int groups = kDefaultGroups;
  std::vector<Pair> candidates;  // empty = every pair of {8,4,2} plus the baseline pair
};

struct LimitsSpec {
  std::optional<double> max_bits;  // effective bits per element, at `at`; hard
  std::optional<double> max_loss;  // of the objective metric, absolute
};

struct AtSpec {
  int64_t context = 4096;  // tokens
  int64_t batch = 1;
};

struct TaskSpec {
  TaskProtocol protocol;
  int64_t examples = 0;  // the first N of the split; 0 = all
  Metric metric = Metric::exact_match;
};

// What a user may set of a task; nothing set = the defaults of tasks.def.
struct TaskOptions {
  std::string name;
  std::optional<int64_t> shots;
  std::optional<std::string> split;
  std::optional<int64_t> seed;  // generated tasks only
  std::optional<int64_t> max_new_tokens;
  std::optional<int64_t> length;  // only tasks that are made to a length
  std::optional<std::string> form;
  std::optional<int64_t> context;
  std::optional<std::string> rows;
  std::optional<int64_t> examples;
  std::optional<std::string> metric;
};
// Error (bad_input) names the value, the allowed ones and the nearest.
Result<TaskSpec> make_task(const TaskOptions& options);
Status check_split(const std::string& task, const std::string& split);
Status check_form(const std::string& task, const std::string& form);

struct StudySpec {
  std::string name;
  std::string model;  // folder
  SchemeOptions scheme;
  BaseType baseline_kv = BaseType::fp16;
  SearchSpec search;
  LimitsSpec limits;
  AtSpec at;
  TaskSpec objective_task;
  std::vector<TaskSpec> report_tasks;
};

struct SweepSpec {
  std::string name;  // "" when the file holds a single study without `studies:`
  std::vector<StudySpec> studies;
};

// Accepts the sweep form (defaults + studies) and the flat form of one study. An unknown or
// mistyped key, an empty sweep or an impossible limit is bad_input with line, column and the
// nearest known key ("FILE:LINE:COLUMN: ..."). Does not touch the model folder.
//
// `defaults` and a study are merged key by key; lists are replaced. A scheme or task given as a
// text, or a map with a new name, starts from that name's own defaults.
struct SpecOptions {
  std::vector<std::string> algorithms;  // allowed names; empty = not checked (core has no list)
};
Result<SweepSpec> parse_spec(const std::string& yaml, const std::string& where,
                             const SpecOptions& options = {});
// Also makes model paths absolute: relative ones count from the folder of the spec file.
Result<SweepSpec> read_spec(const std::string& path, const SpecOptions& options = {});

// Canonical JSON of a study, for the store and for its hash.
Json to_json(const StudySpec& spec);
Result<StudySpec> study_spec_from_json(const Json& json);

// Every key with type, default and meaning, for docs and `kvsweep check --keys`.
struct SpecKey {
  std::string path;  // "search.trials"
  std::string type;
  std::string fallback;  // "" = required
  std::string meaning;
};
const std::vector<SpecKey>& spec_keys();

}  // namespace kvsweep
