// `kvsweep trials`: the trials of a study, one line each.
#include <fmt/format.h>

#include <algorithm>

#include "cli/common_options.hpp"
#include "cli/table.hpp"
#include "cli/trial_view.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

class Trials final : public Verb {
 public:
  void declare(Options& options) override {
    database_.declare(options);
    study_.declare(options);
    options.value("--state", "STATE", "only asked, complete, infeasible or failed trials",
                  one_of("--state", {"asked", "complete", "infeasible", "failed"}, state_));
    options.value("--sort", "KEY", "number, bytes or loss (default number)",
                  one_of("--sort", {"number", "bytes", "loss"}, sort_));
    options.integer("--limit", "N", limit_, 1, 10'000'000, "print at most so many");
    options.flag("--json", json_, "print one JSON document");
    options.example("trials --sort loss --limit 10");
    options.example("trials --study nightly/llama31-8b --state failed");
  }

  Result<int> run(Context& context) override {
    KVSWEEP_ASSIGN(const store::Store store, database_.open(store::OpenMode::read_only));
    KVSWEEP_ASSIGN(const store::StudyRow study, study_.pick(store));
    KVSWEEP_ASSIGN(std::vector<store::TrialRow> rows, store.trials(study.id));
    const size_t total = rows.size();
    select(rows);
    KVSWEEP_ASSIGN(const std::vector<TrialView> trials, with_maps(store, rows));
    context.out.print(json_ ? json_text(study, trials) : plain_text(study, trials, total, context));
    return kOk;
  }

 private:
  static std::function<Status(const std::string&)> one_of(const std::string& option,
                                                          std::vector<std::string> known,
                                                          std::string& place) {
    return [=, &place](const std::string& text) -> Status {
      if (std::find(known.begin(), known.end(), text) == known.end()) {
        return bad_input(option + " is \"" + text + "\"; allowed are " + join(known, ", "));
      }
      place = text;
      return {};
    };
  }

  void select(std::vector<store::TrialRow>& rows) const {
    std::erase_if(rows, [&](const store::TrialRow& row) {
      return !state_.empty() && to_string(row.state) != state_;
    });
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const store::TrialRow& a, const store::TrialRow& b) {
                       if (sort_ == "bytes") return a.bytes < b.bytes;
                       if (sort_ == "loss") return a.loss.value_or(1e300) < b.loss.value_or(1e300);
                       return a.number < b.number;
                     });
    if (rows.size() > limit_) rows.resize(limit_);
  }

  static std::string plain_text(const store::StudyRow& study, const std::vector<TrialView>& trials,
                                size_t total, const Context& context) {
    Table table({">trial", "outcome", "origin", "~map", ">cache", ">bits", ">" + metric_name(study),
                 ">loss", ">n"});
    for (const TrialView& trial : trials) {
      const store::TrialRow& row = trial.row;
      table.row({trial_label(row), trial_outcome(row), row.origin, summary(trial.map),
                 human_bytes(row.bytes), fmt::format("{:.2f}", row.effective_bits),
                 number_text(row.metric), number_text(row.loss), std::to_string(row.examples)});
    }
    return fmt::format("{}: {} of {} trials\n\n{}", full_name(study), trials.size(), total,
                       trials.empty() ? "nothing to show\n" : table.text(context.out));
  }

  static std::string json_text(const store::StudyRow& study, const std::vector<TrialView>& trials) {
    Json document = {{"study", study_json(study)}, {"trials", Json::array()}};
    for (const TrialView& trial : trials) document["trials"].push_back(trial_json(trial));
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  DatabaseOptions database_;
  StudyOptions study_;
  std::string state_;
  std::string sort_ = "number";
  size_t limit_ = 10'000'000;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_trials_verb() {
  return std::make_unique<Trials>();
}

}  // namespace kvsweep::cli
