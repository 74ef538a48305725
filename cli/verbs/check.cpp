// `kvsweep check SPEC`: validates a spec and says what it would search, without running anything.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/common_options.hpp"
#include "cli/run_study.hpp"
#include "cli/space_check.hpp"
#include "cli/study_cost.hpp"
#include "cli/table.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

struct StudyCheck {
  StudySpec spec;
  std::optional<SpaceCheck> space;  // nullopt: the model folder is not here
  std::optional<StudyCost> cost;    // nullopt: the database has no timings for this
};

std::string count_text(double count) {
  return count < 1e15 ? fmt::format("{:.0f}", count) : fmt::format("{:.3g}", count);
}

bool has_nvfp4(const std::vector<Pair>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](Pair pair) { return pair.k == Codec::nvfp4 || pair.v == Codec::nvfp4; });
}

class Check final : public Verb {
 public:
  void declare(Options& options) override {
    options.positional("SPEC", spec_, "study or sweep (YAML)", false);
    options.flag("--keys", keys_, "print every key of a spec with type, default and meaning");
    database_.declare(options);
    options.flag("--json", json_, "print one JSON document");
    options.example("check examples/smollm2.yaml");
    options.example("check --keys");
  }

  Result<int> run(Context& context) override {
    if (keys_) return print_keys(context);
    if (spec_.empty()) return bad_input("SPEC is missing; give a YAML file, or --keys");
    KVSWEEP_ASSIGN(const SweepSpec sweep, read_checked_spec(spec_));
    std::vector<StudyCheck> checks;
    for (const StudySpec& study : sweep.studies) {
      KVSWEEP_ASSIGN(StudyCheck check, check_study(study));
      checks.push_back(std::move(check));
    }
    context.out.print(json_ ? json_text(sweep, checks) : plain_text(sweep, checks, context));
    return kOk;
  }

 private:
  int print_keys(const Context& context) const {
    if (json_) {
      Json document = Json::array();
      for (const SpecKey& key : spec_keys()) {
        document.push_back({{"key", key.path},
                            {"type", key.type},
                            {"default", key.fallback.empty() ? Json() : Json(key.fallback)},
                            {"meaning", key.meaning}});
      }
      context.out.print(document.dump(2) + "\n");
      return kOk;
    }
    Table table({"key", "type", "default", "~meaning"});
    for (const SpecKey& key : spec_keys()) {
      table.row(
          {key.path, key.type, key.fallback.empty() ? "(required)" : key.fallback, key.meaning});
    }
    context.out.print(
        "A sweep holds `sweep` (its name), `defaults` (keys below) and `studies` (a "
        "list of maps of keys below);\na single study holds the keys below at the "
        "top.\n\n" +
        table.text(context.out));
    return kOk;
  }

  Result<StudyCheck> check_study(const StudySpec& spec) const {
    StudyCheck check{spec, {}, {}};
    std::error_code ignored;
    if (!std::filesystem::exists(spec.model, ignored)) return check;
    KVSWEEP_TRY(check_model_folder(spec.model));
    KVSWEEP_ASSIGN(const ModelGeometry geometry, read_geometry(spec.model));
    const Result<SpaceCheck> space = check_space(spec, geometry);
    if (!space.ok()) {
      return Error{space.error().code,
                   fmt::format("{}: study {}: {}", spec_, spec.name, space.error().message)};
    }
    check.space = *space;
    const auto store = database_.open(store::OpenMode::read_only);
    if (store.ok()) {
      KVSWEEP_ASSIGN(check.cost, estimate_cost(*store, spec));
    }
    return check;
  }

  static std::string fitting_text(const SpaceCheck& space) {
    if (space.exact) return count_text(space.fitting) + " (exact)";
    return fmt::format("about {:.1f} % (from a sample of {})", 100 * space.fitting / space.size,
                       space.looked_at);
  }

  std::string plain_text(const SweepSpec& sweep, const std::vector<StudyCheck>& checks,
                         const Context& context) const {
    std::string text = sweep.name.empty()
                           ? fmt::format("{}: one study\n", spec_)
                           : fmt::format("{}: sweep {} of {} {}\n", spec_, sweep.name,
                                         checks.size(), checks.size() == 1 ? "study" : "studies");
    for (const StudyCheck& check : checks) text += study_text(check, context);
    return text;
  }

  static std::string study_text(const StudyCheck& check, const Context& context) {
    const StudySpec& spec = check.spec;
    std::string text = "\n" + context.out.bold(spec.name) + "\n";
    const auto line = [&](const char* name, const std::string& value) {
      text += fmt::format("  {:<12} {}\n", name, value);
    };
    line("model", spec.model + (check.space ? "" : " (not on this machine)"));
    const Result<Scheme> scheme = make_scheme(spec.scheme);
    line("scheme", scheme.ok() ? described(*scheme) : spec.scheme.name);
    if (scheme.ok() && scheme->ranges.empty() && has_nvfp4(spec.search.candidates)) {
      line("note",
           "nvfp4 without scheme.ranges keeps the scale of each tensor at 1; `kvsweep calibrate` "
           "measures it");
    }
    line("objective",
         fmt::format("{} on {} {}/{}", to_string(spec.objective_task.metric),
                     spec.objective_task.examples == 0
                         ? std::string("all examples of")
                         : fmt::format("{} examples of", spec.objective_task.examples),
                     spec.objective_task.protocol.name, spec.objective_task.protocol.split));
    line("search", fmt::format("{}, {} trials, seed {}", spec.search.algorithm, spec.search.trials,
                               spec.search.seed));
    if (!check.space) {
      line("space", "not known without the model");
      return text;
    }
    const SpaceCheck& space = *check.space;
    line("space", fmt::format("{} maps: {} groups of up to {} pairs", count_text(space.size),
                              space.groups, space.candidates));
    line("cache", fmt::format("{} to {} ({:.2f} to {:.2f} bits), baseline {}, at {} tokens x {}",
                              human_bytes(space.least_bytes), human_bytes(space.most_bytes),
                              space.least_bits, space.most_bits, human_bytes(space.baseline_bytes),
                              spec.at.context, spec.at.batch));
    if (spec.limits.max_bits) {
      line("within limit",
           fmt::format("{} at most {} bits", fitting_text(space), *spec.limits.max_bits));
    }
    line("time", check.cost ? cost_text(*check.cost, spec)
                            : "not known: the database has no timings of this model and task");
    return text;
  }

  static std::string cost_text(const StudyCost& cost, const StudySpec& spec) {
    return fmt::format(
        "about {} for {} trials ({} each, as in study {})",
        human_seconds(cost.seconds_per_trial * static_cast<double>(spec.search.trials)),
        spec.search.trials, human_seconds(cost.seconds_per_trial), cost.source);
  }

  static std::string json_text(const SweepSpec& sweep, const std::vector<StudyCheck>& checks) {
    Json studies = Json::array();
    for (const StudyCheck& check : checks) {
      Json study = {{"spec", to_json(check.spec)}, {"space", Json()}, {"seconds", Json()}};
      if (check.space) {
        study["space"] = {{"size", check.space->size},
                          {"groups", check.space->groups},
                          {"least_bytes", check.space->least_bytes},
                          {"most_bytes", check.space->most_bytes},
                          {"baseline_bytes", check.space->baseline_bytes},
                          {"least_bits", check.space->least_bits},
                          {"most_bits", check.space->most_bits},
                          {"within_limit", check.space->fitting},
                          {"exact", check.space->exact}};
      }
      if (check.cost) {
        study["seconds"] =
            check.cost->seconds_per_trial * static_cast<double>(check.spec.search.trials);
      }
      studies.push_back(std::move(study));
    }
    const Json document = {{"sweep", sweep.name}, {"studies", std::move(studies)}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  std::string spec_;
  bool keys_ = false;
  DatabaseOptions database_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_check_verb() {
  return std::make_unique<Check>();
}

}  // namespace kvsweep::cli
