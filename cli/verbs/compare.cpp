// `kvsweep compare A B`: two maps, paired over the examples that both were measured on.
#include <fmt/format.h>

#include <charconv>

#include "cli/common_options.hpp"
#include "cli/comparison.hpp"
#include "cli/pick_trial.hpp"

namespace kvsweep::cli {
namespace {

constexpr const char* kMapMark = "map:";

class Compare final : public Verb {
 public:
  void declare(Options& options) override {
    options.note(
        "Pairs the two by example. A and B are trials of the study (a number, or `baseline`), or "
        "maps of the database as map: and the first digits of their id. Loss is what B scores "
        "below A: with exact McNemar and Tango's interval for scores of 0 or 1, with a paired t "
        "otherwise. Several B are judged together: their p-values carry Holm's correction.");
    options.positional("A", first_, "the reference: a trial, `baseline` or map:DIGITS");
    options.rest("B", others_, "what is compared with it; several may follow");
    database_.declare(options);
    study_.declare(options);
    options.value(
        "--max-loss", "D", "say whether loss <= D holds at 95 %",
        [this](const std::string& text) -> Status {
          double number = 0;
          const char* end = text.data() + text.size();
          const auto [stop, error] = std::from_chars(text.data(), end, number);
          if (error != std::errc() || stop != end || !(number >= 0 && number < 1e6)) {
            return bad_input("--max-loss is \"" + text + "\"; it must be a number, 0 or more");
          }
          max_loss_ = number;
          return {};
        });
    options.flag("--samples", samples_, "also print the outputs of the examples that changed");
    options.flag("--json", json_, "print one JSON document");
    options.example("compare baseline 17");
    options.example("compare 4 17 23 --study smollm2 --max-loss 0.01");
    options.example("compare map:0f3a9c map:77b1 --samples");
  }

  Result<int> run(Context& context) override {
    if (others_.empty()) {
      return bad_input("B is missing (what is compared with A); see `kvsweep compare --help`");
    }
    KVSWEEP_ASSIGN(const store::Store store, database_.open(store::OpenMode::read_only));
    KVSWEEP_TRY(find_study(store));
    KVSWEEP_ASSIGN(const ComparedMap first, find(store, first_, others_.front()));
    const ComparisonOptions options{study_row_ ? study_row_->model_hash : "", max_loss_};
    std::vector<Comparison> comparisons;
    for (const std::string& name : others_) {
      KVSWEEP_ASSIGN(const ComparedMap second, find(store, name, first_));
      KVSWEEP_ASSIGN(Comparison comparison, compare_maps(store, first, second, options));
      comparisons.push_back(std::move(comparison));
    }
    adjust_for_many(comparisons);
    print(comparisons, context);
    return kOk;
  }

 private:
  static bool is_map(const std::string& name) { return name.rfind(kMapMark, 0) == 0; }

  // A study is needed for trials only; `evaluate` writes databases without one.
  Status find_study(const store::Store& store) {
    bool trials = !study_.name.empty();
    for (const std::string& name : others_) trials = trials || needs_study(name);
    if (!trials && !needs_study(first_)) return {};
    KVSWEEP_ASSIGN(study_row_, study_.pick(store));
    return {};
  }

  static bool needs_study(const std::string& name) { return !is_map(name) && name != "baseline"; }

  Result<ComparedMap> find(const store::Store& store, const std::string& name,
                           const std::string& other) const {
    if (is_map(name)) {
      KVSWEEP_ASSIGN(PrecisionMap map, store.map_by_id(name.substr(4)));
      const std::string id = map_id(map);
      return ComparedMap{"map " + id.substr(0, 12), id, std::move(map)};
    }
    if (study_row_) {
      KVSWEEP_ASSIGN(TrialView trial, pick_trial(store, *study_row_, name));
      const std::string label = trial.row.number < 0 ? "baseline" : "trial " + name;
      return ComparedMap{label + " of " + full_name(*study_row_), trial.row.map_id,
                         std::move(trial.map)};
    }
    // The baseline beside a map: all baselines of as many layers are one map.
    if (!is_map(other)) {
      return bad_input("the baseline is compared with itself; give a trial or map:DIGITS");
    }
    KVSWEEP_ASSIGN(const PrecisionMap beside, store.map_by_id(other.substr(4)));
    PrecisionMap map = baseline_map(beside.scheme, beside.num_layers());
    const std::string id = map_id(map);
    return ComparedMap{"baseline", id, std::move(map)};
  }

  void print(const std::vector<Comparison>& comparisons, const Context& context) const {
    const ComparisonView view{max_loss_, samples_};
    if (json_) {
      Json all = Json::array();
      for (const Comparison& comparison : comparisons) {
        all.push_back(comparison_json(comparison, view));
      }
      const Json document = {{"comparisons", std::move(all)}};
      context.out.print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
      return;
    }
    std::string text;
    for (const Comparison& comparison : comparisons) {
      if (!text.empty()) text += "\n";
      text += comparison_text(comparison, view, context.out);
    }
    context.out.print(text);
  }

  std::string first_;
  std::vector<std::string> others_;
  DatabaseOptions database_;
  StudyOptions study_;
  std::optional<store::StudyRow> study_row_;
  std::optional<double> max_loss_;
  bool samples_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_compare_verb() {
  return std::make_unique<Compare>();
}

}  // namespace kvsweep::cli
