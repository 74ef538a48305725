// Workload: everything to be measured for one model: tasks to describe, evaluations in progress,
// and the units that fill their gaps. The one place where measurements enter the store.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/evaluation.hpp"
#include "coordinator/retry.hpp"
#include "coordinator/unit_board.hpp"
#include "core/clock.hpp"
#include "core/result.hpp"
#include "core/wire/messages.hpp"
#include "store/store.hpp"

namespace kvsweep::coordinator {

struct ModelContext {
  std::string model_dir;
  std::string model_hash;
  BaseType base = BaseType::fp16;
  int64_t study_id = 0;        // 0 = no study
  std::string numerics_class;  // "" until the first worker is admitted
};

struct WorkloadOptions {
  RetryLimits retry;
  int examples_per_unit = 0;  // 0 = as many as take about ten seconds
};

// What became of a result. `held`: its task is not described yet, so that its examples cannot be
// checked; ask again later, and do not acknowledge it.
enum class Judgement { recorded, held, refused };
struct Verdict {
  Judgement judgement = Judgement::recorded;
  std::string why;  // when refused
};

// Who reports, and whether under a live lease: only then may it charge or finish the unit's lease
// holder's work; whatever comes late can add measurements, never take work away from others.
struct Reporter {
  std::string worker_id;
  bool leased = false;
  WorkerIds live;  // every connected worker
};

struct Grant {
  std::string unit_id;
  int attempt = 1;
  wire::Unit unit;
};

// Not thread-safe. Calls that write do so through the store's current transaction; after an error
// of the store nothing here may be used again.
class Workload {
 public:
  Workload(ModelContext model, store::Store& store, const Clock& clock,
           const WorkloadOptions& options);

  const ModelContext& model() const { return model_; }
  void bind_class(const std::string& numerics_class) { model_.numerics_class = numerics_class; }

  // --- for the driver
  // Has a worker read the task's data, once; `task` is nullptr until that is done.
  void describe(const TaskProtocol& protocol);
  std::shared_ptr<const TaskData> task(const TaskProtocol& protocol) const;
  std::optional<Error> task_failure(const TaskProtocol& protocol) const;

  // Looks up what the store has, and queues units for the rest. The number returned is valid until
  // `forget`.
  Result<int> begin(EvaluationRequest request);
  const Evaluation& evaluation(int id) const { return evaluations_.at(id); }
  void forget(int id);
  // Evaluations that became complete or failed since the last call, in that order.
  std::vector<int> take_ended();

  // --- for the dispatcher
  std::optional<Grant> take(const std::string& worker_id, const WorkerIds& live);
  bool adopt(const std::string& unit_id, int attempt, const std::string& worker_id) {
    return board_.adopt(unit_id, attempt, worker_id) != nullptr;
  }
  void give_back(const std::string& unit_id) { board_.requeue(unit_id); }
  // Charges a failure; fails what needs the unit when that was its last attempt. Ignored unless the
  // reporter holds the lease.
  Status failed(const std::string& unit_id, const wire::UnitFailure& failure,
                const Reporter& reporter);
  // Records a result that is no failure, whatever lease it was made under.
  Result<Verdict> accept(const wire::UnitResult& result, const Reporter& reporter);
  bool knows(const std::string& unit_id) const { return board_.find(unit_id) != nullptr; }
  size_t waiting() const { return board_.waiting(); }
  int64_t described() const { return described_; }  // tasks; grows when held results can be judged

 private:
  struct Task {
    TaskProtocol protocol;
    std::shared_ptr<const TaskData> data;  // nullptr = not yet
    std::optional<Error> failure;
  };
  struct TaskMatch {
    const Task* task;
    RunMode mode;
  };

  std::optional<TaskMatch> match_task(const std::string& protocol_hash) const;
  void cover(int id);
  std::vector<BoardUnit> slices(int id, std::vector<int64_t> missing) const;
  bool same_scope(int a, int b) const;
  int64_t unit_size() const;
  wire::Unit build(const BoardUnit& unit) const;
  wire::Unit build_measure(const BoardUnit& unit) const;
  void fail_evaluations(const BoardUnit& unit, const Error& error);
  void drop_units_of(int id);
  void note_speed(const BoardUnit& unit, double wall_ms);
  Status record_unit(const BoardUnit& unit, const std::string& state, const std::string& worker_id,
                     const std::string& failure, double wall_ms);
  Result<Verdict> accept_description(const wire::UnitResult& result, const Reporter& reporter);
  Result<Verdict> accept_measurements(const wire::UnitResult& result, const Reporter& reporter);
  Result<Verdict> refuse(const wire::UnitResult& result, const Error& error,
                         const Reporter& reporter);
  Status record(const wire::UnitResult& result, const store::MeasurementScope& scope,
                const std::string& worker_id);
  bool map_is_known(const std::string& map_id) const;
  Status finish_unit(const wire::UnitResult& result, const Reporter& reporter);

  ModelContext model_;
  store::Store& store_;
  const Clock& clock_;
  WorkloadOptions options_;
  UnitBoard board_;
  std::map<std::string, Task> tasks_;  // by protocol hash of generate mode
  std::map<int, Evaluation> evaluations_;
  std::vector<int> ended_;
  int next_id_ = 0;
  int64_t described_ = 0;
  double ms_per_example_ = 0;  // 0 = not known yet
};

}  // namespace kvsweep::coordinator
