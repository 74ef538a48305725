// `kvsweep front`: the Pareto front of a study.
#include <fmt/format.h>

#include <set>

#include "cli/common_options.hpp"
#include "cli/front_report.hpp"
#include "cli/front_svg.hpp"
#include "core/file.hpp"

namespace kvsweep::cli {
namespace {

SvgPlot plot_of(const FrontReport& report, const std::vector<TrialView>& trials) {
  const StudySpec& spec = report.study.spec;
  std::set<int64_t> members;
  for (const TrialView& member : report.members) members.insert(member.row.number);
  SvgPlot plot;
  plot.title = fmt::format("{}: {} trials, front of {}", full_name(report.study), trials.size(),
                           report.members.size());
  plot.x_label = fmt::format("effective bits per KV element at {} tokens", spec.at.context);
  plot.y_label =
      fmt::format("loss ({} on {})", metric_name(report.study), spec.objective_task.protocol.name);
  const auto point = [](const TrialView& trial, bool on_front) {
    return SvgPoint{
        trial.row.effective_bits, trial.row.loss.value_or(0),
        fmt::format("{}: {}, {:.2f} bits, loss {}", trial_label(trial.row), summary(trial.map),
                    trial.row.effective_bits, number_text(trial.row.loss)),
        on_front, trial_label(trial.row)};
  };
  for (const TrialView& trial : trials) {
    plot.trials.push_back(point(trial, members.count(trial.row.number) > 0));
  }
  if (report.baseline) plot.baseline.push_back(point(*report.baseline, false));
  return plot;
}

class Front final : public Verb {
 public:
  void declare(Options& options) override {
    options.note(
        "Prints the trials that no other trial beats in both cache bytes and loss, beside "
        "the baseline and the uniform maps.");
    database_.declare(options);
    study_.declare(options);
    options.text("--svg", "FILE", svg_, "also write a picture (replaces the file)");
    options.flag("--json", json_, "print one JSON document");
    options.example("front");
    options.example("front --study smollm2 --svg front.svg");
  }

  Result<int> run(Context& context) override {
    KVSWEEP_ASSIGN(const store::Store store, database_.open(store::OpenMode::read_only));
    KVSWEEP_ASSIGN(const store::StudyRow study, study_.pick(store));
    KVSWEEP_ASSIGN(const FrontReport report, load_front(store, study));
    if (!svg_.empty()) {
      KVSWEEP_ASSIGN(const std::vector<TrialView> trials, with_maps(store, report.complete));
      KVSWEEP_TRY(write_file_atomic(svg_, front_svg(plot_of(report, trials))));
    }
    context.out.print(
        json_ ? front_json(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
              : front_text(report, context.out));
    if (!svg_.empty() && !json_) context.out.print("\npicture: " + svg_ + "\n");
    return kOk;
  }

 private:
  DatabaseOptions database_;
  StudyOptions study_;
  std::string svg_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_front_verb() {
  return std::make_unique<Front>();
}

}  // namespace kvsweep::cli
