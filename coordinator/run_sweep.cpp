#include <fmt/format.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/host.hpp"
#include "coordinator/study_run.hpp"
#include "core/log.hpp"

namespace kvsweep::coordinator {

namespace {

// A mistake in the last study is told before the first has run for a day.
Status check_studies(const SweepSpec& sweep) {
  for (const StudySpec& spec : sweep.studies) {
    KVSWEEP_ASSIGN(const ModelGeometry geometry, read_geometry(spec.model));
    KVSWEEP_TRY(StudySpace::make(spec, geometry));
  }
  return {};
}

}  // namespace

Result<RunReport> run_sweep(const SweepSpec& sweep, store::Store& store,
                            const CoordinatorOptions& options, const Clock& clock,
                            const std::atomic<int>& stop, const ProgressSink& progress,
                            const std::function<void(const std::string&)>& on_bound) {
  KVSWEEP_TRY(check_studies(sweep));
  KVSWEEP_ASSIGN(const auto host, Host::start(store, clock, options, on_bound));
  RunReport report{.endpoint = host->address()};
  const StudyOptions study_options{.workload = workload_options(options),
                                   .abort_failure_share = options.abort_failure_share};
  for (const StudySpec& spec : sweep.studies) {
    KVSWEEP_ASSIGN(const auto study, StudyRun::open(sweep.name, spec, store, clock, study_options));
    KVSWEEP_ASSIGN(const RunEnd end, host->run(*study, stop, progress));
    report.studies.push_back(study->row());
    report.interrupted = end == RunEnd::interrupted || stop.load() > 0;
    if (report.interrupted) break;
  }
  host->finish(stop.load() >= 2);
  return report;
}

}  // namespace kvsweep::coordinator
