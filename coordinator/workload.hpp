// Workload: everything to be measured for one model: tasks to describe, evaluations in progress,
// and the pieces of work that fill their gaps, which are lent alone or several maps at a time. The
// one place where measurements enter the store.
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
  int maps_per_unit = 0;      // 0 = what the scheme gains from (joint_maps.hpp)
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
  const WorkloadOptions& options() const { return options_; }
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
    return board_.adopt(unit_id, attempt, worker_id);
  }
  void give_back(const std::string& unit_id) { board_.requeue(unit_id); }
  // Charges a failure, if the unit had one map, or splits it; fails what needs a piece for which
  // that was the last attempt. Ignored unless the reporter holds the lease.
  Status failed(const std::string& unit_id, const wire::UnitFailure& failure,
                const Reporter& reporter);
  // Records a result that is no failure, whatever lease it was made under. Maps whose figures are
  // impossible are refused, and charged, by themselves; the others are recorded.
  Result<Verdict> accept(const wire::UnitResult& result, const Reporter& reporter);
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
  std::vector<Piece> slices(int id, const std::vector<int64_t>& missing);
  std::string company_of(const Evaluation& evaluation, const std::vector<int64_t>& examples) const;
  bool same_scope(int a, int b) const;
  int64_t unit_size(int64_t maps) const;
  int64_t steady_unit_size(const Evaluation& evaluation);
  void trim_waiting();
  wire::Unit build(const LentUnit& unit) const;
  wire::Unit build_measure(const LentUnit& unit) const;
  void fail_evaluations(const Piece& piece, const Error& error);
  void drop_pieces_of(int id);
  Status give_up(const std::vector<Piece>& spent, const wire::UnitFailure& failure,
                 const std::string& worker_id);
  void note_speed(const wire::UnitResult& result);
  Status record_piece(const Piece& piece, const std::string& state, const std::string& worker_id,
                      const std::string& failure, double wall_ms);
  Result<Verdict> accept_description(const wire::UnitResult& result, const Reporter& reporter);
  Result<Verdict> accept_measurements(const wire::UnitResult& result, const Reporter& reporter);
  Result<Verdict> refuse(const wire::UnitResult& result, const Error& error,
                         const Reporter& reporter);
  std::optional<Error> objection(const wire::MapMeasurements& map, const TaskMatch& match) const;
  Status record(const wire::MapMeasurements& map, const wire::UnitResult& result,
                const std::string& worker_id);
  bool map_is_known(const std::string& map_id) const;
  Status finish_pieces(const wire::UnitResult& result, const std::map<std::string, Error>& bad,
                       const Reporter& reporter);
  bool is_lent(const std::string& unit_id, const std::string& piece_id) const;

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
  std::map<std::string, int64_t> unit_sizes_;  // of joint units, by protocol hash and maps
  int64_t workers_ = 1;                        // connected when one last asked
  bool untrimmed_ = false;     // what waits may ask for examples that are there by now
  double ms_per_example_ = 0;  // of one map; 0 = not known yet
};

}  // namespace kvsweep::coordinator
