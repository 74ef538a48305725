// ReportRun: measures the baseline and the final front again on data that the search has not seen.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "coordinator/baseline_run.hpp"
#include "coordinator/workload.hpp"
#include "core/json.hpp"

namespace kvsweep::coordinator {

struct ReportedMap {
  int64_t trial = 0;
  PrecisionMap map;
};

class ReportRun {
 public:
  ReportRun(Workload& workload, std::vector<TaskSpec> tasks, PrecisionMap baseline,
            std::vector<ReportedMap> maps);

  // Begins what can begin. Call after anything ended.
  Status step();
  bool complete() const { return next_task_ == tasks_.size() && !baseline_; }
  // One object per task that was completed since the last call: task, split, metric, examples, and
  // per map its trial, map_id, value, baseline, loss and (loss_low, loss_high), its 95 % interval.
  std::vector<Json> take_reports();
  // Sentences about what could not be measured; "" when everything was.
  const std::string& problems() const { return problems_; }

 private:
  Status begin_maps();
  Status finish_task();
  void problem(const std::string& text);

  Workload& workload_;
  std::vector<TaskSpec> tasks_;
  PrecisionMap baseline_map_;
  std::vector<ReportedMap> maps_;
  size_t next_task_ = 0;
  std::optional<BaselineRun> baseline_;  // of the task being measured
  std::vector<int> evaluations_;         // of maps_, once begun
  std::vector<Json> reports_;
  std::string problems_;
};

}  // namespace kvsweep::coordinator
