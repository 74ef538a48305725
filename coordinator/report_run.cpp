#include "coordinator/report_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/coordinator.hpp"
#include "coordinator/joint_maps.hpp"

namespace kvsweep::coordinator {

namespace {

Json report_row(int64_t trial, const std::string& map_id, const MetricValue& value) {
  Json row = {{"trial", trial},
              {"map_id", map_id},
              {"value", value.value},
              {"baseline", value.baseline},
              {"loss", value.loss}};
  if (value.interval) {
    row["loss_low"] = value.interval->low;
    row["loss_high"] = value.interval->high;
    row["method"] = std::string(value.method);
  }
  return row;
}

}  // namespace

ReportRun::ReportRun(Workload& workload, std::vector<TaskSpec> tasks, PrecisionMap baseline,
                     std::vector<ReportedMap> maps)
    : workload_(workload),
      tasks_(std::move(tasks)),
      baseline_map_(std::move(baseline)),
      maps_(std::move(maps)) {}

Status ReportRun::step() {
  while (!complete()) {
    if (!baseline_) baseline_.emplace(workload_, tasks_[next_task_++], baseline_map_);
    KVSWEEP_TRY(baseline_->step());
    if (baseline_->failure()) {
      problem(baseline_->failure()->message);
      baseline_.reset();
      continue;
    }
    if (!baseline_->complete()) return {};
    if (evaluations_.empty() && !maps_.empty()) KVSWEEP_TRY(begin_maps());
    const bool running = std::any_of(evaluations_.begin(), evaluations_.end(), [&](int id) {
      return workload_.evaluation(id).fate() == Evaluation::Fate::running;
    });
    if (running) return {};
    KVSWEEP_TRY(finish_task());
  }
  return {};
}

Status ReportRun::begin_maps() {
  for (const ReportedMap& reported : maps_) {
    EvaluationRequest request = baseline_->request(reported.map);
    const JointMaps joint =
        joint_maps(reported.map.scheme, request.examples, workload_.options().maps_per_unit);
    request.maps_per_unit = std::min(joint.open, static_cast<int64_t>(maps_.size()));
    KVSWEEP_ASSIGN(const int id, workload_.begin(std::move(request)));
    evaluations_.push_back(id);
  }
  return {};
}

Status ReportRun::finish_task() {
  const TaskSpec& task = baseline_->task();
  Json rows = Json::array();
  for (size_t i = 0; i < evaluations_.size(); ++i) {
    const Evaluation& evaluation = workload_.evaluation(evaluations_[i]);
    if (evaluation.fate() == Evaluation::Fate::failed) {
      problem(fmt::format("trial {}: {}", maps_[i].trial, evaluation.failure().message));
    } else {
      KVSWEEP_ASSIGN(const MetricValue value, metric_value(task.metric, evaluation.measurements(),
                                                           baseline_->measurements()));
      rows.push_back(report_row(maps_[i].trial, evaluation.scope().map_id, value));
    }
    workload_.forget(evaluations_[i]);
  }
  reports_.push_back({{"task", task.protocol.name},
                      {"split", task.protocol.split},
                      {"metric", std::string(to_string(task.metric))},
                      {"examples", baseline_->examples()},
                      {"maps", std::move(rows)}});
  evaluations_.clear();
  baseline_.reset();
  return {};
}

std::vector<Json> ReportRun::take_reports() {
  return std::exchange(reports_, {});
}

void ReportRun::problem(const std::string& text) {
  if (!problems_.empty()) problems_ += "; ";
  problems_ += text;
}

}  // namespace kvsweep::coordinator
