#include "cli/run_study.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/front_report.hpp"
#include "cli/progress.hpp"
#include "cli/signals.hpp"
#include "search/algorithms/algorithm.hpp"

namespace kvsweep::cli {
namespace {

bool any_failed(const coordinator::RunReport& report) {
  return std::any_of(report.studies.begin(), report.studies.end(),
                     [](const auto& study) { return study.status == store::StudyStatus::failed; });
}

// What a reference scheme measures is true, but the bytes beside it are those of what is published.
void note_reference(const StudySpec& study, ProgressPrinter& printer) {
  if (!is_reference_scheme(study.scheme.name)) return;
  printer.line(fmt::format(
      "study {}: scheme {} reproduces published code; it is simulated and slow, and its bytes are "
      "those of the published formula",
      study.name, study.scheme.name));
}

int exit_code(const coordinator::RunReport& report) {
  if (report.interrupted) return kInterrupted;
  return any_failed(report) ? kFailed : kOk;
}

Status print_report(const coordinator::RunReport& report, const store::Store& store, bool json,
                    const Context& context) {
  Json studies = Json::array();
  for (size_t i = 0; i < report.studies.size(); ++i) {
    KVSWEEP_ASSIGN(const FrontReport front, load_front(store, report.studies[i]));
    const bool nothing = front.study.status == store::StudyStatus::failed &&
                         front.complete.empty() && !front.baseline;
    if (json) {
      studies.push_back(front_json(front));
    } else if (!nothing) {  // why it failed is said once, on standard error
      context.out.print((i > 0 ? "\n" : "") + front_text(front, context.out));
    }
  }
  if (json) {
    const Json document = {{"interrupted", report.interrupted},
                           {"endpoint", report.endpoint},
                           {"studies", std::move(studies)}};
    context.out.print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  return {};
}

}  // namespace

Result<SweepSpec> read_checked_spec(const std::string& path) {
  SpecOptions options;
  for (const search::AlgorithmInfo& algorithm : search::algorithms()) {
    options.algorithms.emplace_back(algorithm.name);
  }
  return read_spec(path, options);
}

Result<int> StudyRun::operator()(Context& context) const {
  KVSWEEP_ASSIGN(const SweepSpec sweep, read_checked_spec(spec));
  std::vector<std::string> models;
  for (const StudySpec& study : sweep.studies) {
    // Of all studies, before the first one runs for hours.
    KVSWEEP_TRY(check_model_folder(study.model));
    models.push_back(study.model);
  }
  coordinator::CoordinatorOptions options = run.make_without_workers();
  if (local_workers) {
    KVSWEEP_ASSIGN(options, run.make(models, database.path));
  }
  KVSWEEP_TRY(log.apply());
  KVSWEEP_ASSIGN(store::Store store, database.open(store::OpenMode::read_write));
  catch_signals();

  ProgressPrinter printer(context.err, context.clock, json);
  for (const StudySpec& study : sweep.studies) {
    if (!json) note_reference(study, printer);
  }
  const auto on_bound = [&](const std::string& endpoint) {
    if (json) return;
    if (local_workers) {
      printer.line(fmt::format("local workers: {}, threads of each: {}; logs in {}",
                               options.local.count, options.local.threads, options.local.log_dir));
    } else {
      printer.line("listening on " + endpoint + "; start workers with `kvsweep worker --connect " +
                   endpoint + "`");
    }
  };
  const auto on_progress = [&](const coordinator::StudyProgress& p) { printer.show(p); };
  const Result<coordinator::RunReport> report = coordinator::run_sweep(
      sweep, store, options, context.clock, context.stop, on_progress, on_bound);
  printer.end();
  if (!report.ok()) return report.error();
  KVSWEEP_TRY(print_report(*report, store, json, context));
  if (report->interrupted) {
    printer.line(
        "kvsweep: interrupted; what was measured is recorded, and the same command goes "
        "on from there");
  }
  for (const store::StudyRow& study : report->studies) {
    if (study.status != store::StudyStatus::failed) continue;
    printer.line("kvsweep: study " + full_name(study) + " failed: " + study.status_reason);
  }
  return exit_code(*report);
}

}  // namespace kvsweep::cli
