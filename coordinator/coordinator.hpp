// Coordinator: runs studies over workers that connect to its ZeroMQ endpoint. The one code path
// behind `kvsweep tune`, `coordinator` and `evaluate`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/measurement.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "core/study_spec.hpp"
#include "search/stats/interval.hpp"
#include "store/store.hpp"

namespace kvsweep::coordinator {

struct LocalWorkerOptions {
  int count = 0;        // 0 = only workers started elsewhere
  std::string program;  // path of kvsweep-worker
  int threads = 1;      // per worker
  std::string data_dir;
  std::string log_dir;             // standard error of each worker goes to LOG_DIR/worker-N.log
  int64_t cache_budget_bytes = 0;  // 0 = the worker's default
};

struct CoordinatorOptions {
  std::string bind = "tcp://127.0.0.1:*";  // non-loopback needs `insecure`
  bool insecure = false;
  int64_t heartbeat_ms = 1000;
  int64_t lease_ms = 30000;   // after the last progress that names the lease
  int64_t stall_ms = 600000;  // a unit whose counters stand still for so long has timed out
  int64_t drain_ms = 60000;   // how long a drain waits for running units before it leaves them
  int examples_per_unit = 0;  // 0 = as many as take about ten seconds
  int maps_per_unit = 0;      // that share a worker's passes; 0 = what the scheme gains from
  int max_attempts = 3;       // per unit and failure class, beyond preemption and lost workers
  double abort_failure_share = 0.5;  // of trials, after the first 10: something is wrong, stop
  LocalWorkerOptions local;
};

// What a person watching wants to know; sent at most every 200 ms and at every trial's end.
struct StudyProgress {
  std::string study;
  int64_t trials_done = 0;
  int64_t trials_budget = 0;
  int64_t trials_reused = 0;
  int64_t trials_failed = 0;
  int64_t examples_done = 0;  // of all live units
  int64_t workers_live = 0;
  int64_t workers_busy = 0;
  double trials_per_minute = 0;
  double eta_seconds = -1;              // < 0 = unknown
  double hypervolume = 0;               // share of the reference box, 0..1
  std::optional<store::TrialRow> best;  // lightest trial within max_loss (default 0.02)
  std::string phase;  // "waiting for a worker", "baseline", "searching", "reporting"
};
using ProgressSink = std::function<void(const StudyProgress&)>;

struct RunReport {
  std::vector<store::StudyRow> studies;  // as they ended
  bool interrupted = false;              // drained before the end
  std::string endpoint;
};

// Runs all studies of `sweep` to their end, in order, recording in `store`. Blocks.
// `stop`: 1 = drain (finish running units, record, return), 2 = stop at once; set by signals.
// `on_bound` is told the endpoint as soon as workers can connect.
Result<RunReport> run_sweep(const SweepSpec& sweep, store::Store& store,
                            const CoordinatorOptions& options, const Clock& clock,
                            const std::atomic<int>& stop, const ProgressSink& progress,
                            const std::function<void(const std::string&)>& on_bound);

// One map (and the baseline it is compared with) on some tasks, without a search.
struct EvaluateRequest {
  std::string model_dir;
  PrecisionMap map;
  BaseType base = BaseType::fp16;
  std::vector<TaskSpec> tasks;
};
struct EvaluateRow {
  TaskSpec task;
  RunMode mode = RunMode::generate;
  int64_t examples = 0;
  int64_t reused = 0;                 // measurements that were in the store already
  std::vector<Measurement> map;       // by example
  std::vector<Measurement> baseline;  // by example
};
struct EvaluateReport {
  std::vector<EvaluateRow> rows;
  std::string model_hash;
  std::string numerics_class;
  bool interrupted = false;
};
Result<EvaluateReport> evaluate(const EvaluateRequest& request, store::Store& store,
                                const CoordinatorOptions& options, const Clock& clock,
                                const std::atomic<int>& stop, const ProgressSink& progress);

// Mean of a metric over paired measurements, and the loss against the baseline (>= 0 is worse):
// exact_match: baseline mean - map mean; answer_agreement and token_agreement: 1 - mean;
// kl: the mean itself. `interval` is that of the loss, 95 %: of exact_match by Tango's, of
// answer_agreement by Wilson's, of the others by Student's t (search/stats/interval.hpp).
struct MetricValue {
  double value = 0;
  double baseline = 0;
  double loss = 0;
  int64_t examples = 0;
  std::optional<search::Interval> interval;  // nullopt for a single example of a mean
  std::string_view method;                   // of the interval: "Tango", "Wilson", "Student's t"
};
Result<MetricValue> metric_value(Metric metric, const std::vector<Measurement>& map,
                                 const std::vector<Measurement>& baseline);

// Of the ZeroMQ library that this program runs with: "4.3.4".
std::string zmq_version();

}  // namespace kvsweep::coordinator
