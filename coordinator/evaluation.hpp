// Evaluation: one map on the first N examples of one task in one run mode. It is complete when
// every example has a measurement, wherever that came from: the store, the unit that was meant to
// make it, or a late result of a lease long expired. Units are only how missing ones are scheduled.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/measurement.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "core/task_protocol.hpp"
#include "core/wire/messages.hpp"
#include "store/store.hpp"

namespace kvsweep::coordinator {

// A task as a worker described it.
struct TaskData {
  TaskProtocol protocol;
  std::vector<std::string> example_hashes;  // index = example
};

using References = std::map<int64_t, wire::Reference>;

struct EvaluationRequest {
  PrecisionMap map;
  std::shared_ptr<const TaskData> task;
  RunMode mode = RunMode::generate;
  int64_t examples = 0;                          // the first N, 1 ..= task size
  std::shared_ptr<const References> references;  // of all of them; for RunMode::forced
  int64_t maps_per_unit = 1;  // how many maps its units may have, itself included
};

class Evaluation {
 public:
  enum class Fate { running, complete, failed };

  Evaluation(EvaluationRequest request, store::MeasurementScope scope);

  const EvaluationRequest& request() const { return request_; }
  const store::MeasurementScope& scope() const { return scope_; }
  std::vector<std::string> example_hashes() const;  // of the N examples

  // The first measurement of an example wins. False when it is not one of ours or not the first.
  bool add(const Measurement& measurement);
  bool has(int64_t example) const { return measured_.contains(example); }
  std::vector<int64_t> missing() const;
  std::vector<Measurement> measurements() const;  // by example

  void fail(Error error);
  Fate fate() const;
  const Error& failure() const { return *failure_; }

  // Measurements that were in the store when it began.
  int64_t reused() const { return reused_; }
  void set_reused(int64_t count) { reused_ = count; }

 private:
  EvaluationRequest request_;
  store::MeasurementScope scope_;
  std::map<int64_t, Measurement> measured_;  // by example
  std::optional<Error> failure_;
  int64_t reused_ = 0;
};

// What a baseline produced, as what others are teacher-forced on.
std::shared_ptr<const References> references_from(const std::vector<Measurement>& baseline);

}  // namespace kvsweep::coordinator
