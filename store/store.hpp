// Store: the SQLite trial database (design §4.5). One writer connection per file; readers open
// read-only and never block it. Not thread-safe: one thread, or one Store per thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/geometry.hpp"
#include "core/measurement.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "core/study_spec.hpp"

namespace kvsweep::store {

inline constexpr int kSchemaVersion = 3;

enum class OpenMode { read_only, read_write };  // read_write creates and migrates

struct OpenOptions {
  OpenMode mode = OpenMode::read_only;
  bool allow_network_fs = false;
};

// running -> finished (budget spent or space exhausted) | stopped (drained, resumable) | failed
enum class StudyStatus { running, finished, stopped, failed };
std::string_view to_string(StudyStatus status);

struct StudyRow {
  int64_t id = 0;
  std::string sweep;
  std::string name;
  StudySpec spec;
  std::string model_hash;
  ModelGeometry geometry;
  std::string numerics_class;  // "" until the first worker says hello
  StudyStatus status = StudyStatus::running;
  std::string status_reason;   // "space exhausted after 625 maps", ...
  double reference_bytes = 0;  // hypervolume reference: bytes of the uniform base-type map
  double reference_loss = 1;   // and the loss that counts as nothing left
  int64_t created_utc_ms = 0;
  int64_t finished_utc_ms = 0;  // 0 = not yet
};

// asked -> complete | infeasible (limit) | failed (its class and message)
enum class TrialState { asked, complete, infeasible, failed };
std::string_view to_string(TrialState state);

struct TrialRow {
  int64_t study_id = 0;
  int64_t number = 0;       // of the proposal; -1 = the study's baseline
  std::vector<int> genome;  // empty for the baseline and for imported maps
  std::vector<int64_t> parents;
  std::string origin;
  std::string map_id;
  TrialState state = TrialState::asked;
  int64_t tell_order = -1;       // 0, 1, 2, ...: order of tells, for replay
  int64_t tells_before = 0;      // tells the algorithm had seen when it proposed this trial:
                                 // with tell_order, the exact interleaving to replay
  double bytes = 0;              // at spec.at
  double effective_bits = 0;     // at spec.at
  std::optional<double> metric;  // mean of the objective metric over `examples`
  std::optional<double> loss;    // against the baseline, paired
  int64_t examples = 0;          // how many examples the number rests on
  bool reused = false;           // all measurements were in the store already
  std::string failure;           // "oom: ..." when failed
  int64_t asked_utc_ms = 0;
  int64_t finished_utc_ms = 0;
};

struct WorkerRow {
  std::string worker_id;
  std::string host;
  std::string device;
  std::string device_name;
  std::string numerics_class;
  std::string version;
  int64_t first_seen_utc_ms = 0;
  int64_t last_seen_utc_ms = 0;
  int64_t units_done = 0;
  int64_t units_failed = 0;
};

struct EventRow {
  int64_t id = 0;
  int64_t study_id = 0;  // 0 = none
  int64_t utc_ms = 0;
  std::string kind;    // "study_started", "worker_joined", "lease_expired", ...
  std::string detail;  // JSON object
};

// What a set of measurements has in common: everything of MeasurementKey but the example.
struct MeasurementScope {
  std::string model_hash;
  std::string map_id;
  std::string protocol_hash;
  std::string numerics_class;
  BaseType base = BaseType::fp16;
};

// One set of measurements under a map, as the database lists them.
struct MeasuredScope {
  int64_t row = 0;  // in this database
  MeasurementScope scope;
  TaskProtocol protocol;
  RunMode mode = RunMode::generate;
};

struct DatabaseInfo {
  std::string path;
  int schema_version = 0;
  std::string sqlite_version;
  int64_t file_bytes = 0;
  std::map<std::string, int64_t> rows;  // table -> count
  bool writer_may_live = false;         // whether some process may be writing it now
};

// Of the SQLite library that this program runs with: "3.40.1".
std::string sqlite_version();

class Store {
 public:
  // Errors: not_found (read_only and absent; no such folder), bad_input (not a kvsweep database,
  // damaged; network file system), conflict (newer schema, another process writes this file), io
  // (permissions, disk). A writer holds PATH.lock until the Store is destroyed.
  static Result<Store> open(const std::string& path, const OpenOptions& options);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Runs `body` in one BEGIN IMMEDIATE transaction; commits (durably) when it returns ok, rolls
  // back otherwise, and also when SQLite refused a statement inside it that `body` let pass. Not
  // nestable. Every write below may be called inside or outside one; outside, it is one of its own.
  Status transaction(const std::function<Status()>& body);

  // --- identities (idempotent). Trials need their map, measurements their model, map and task to
  // be put first (not_found otherwise). All-baseline maps share one id, and the first one put
  // gives the scheme that map_by_id returns.
  Status put_model(const std::string& model_hash, const std::string& dir,
                   const ModelGeometry& geometry);
  Status put_task(const TaskProtocol& protocol, RunMode mode, int64_t examples);
  Status put_map(const PrecisionMap& map);
  Result<PrecisionMap> map_by_id(const std::string& map_id_or_prefix) const;

  // --- studies and trials
  // A study with the same sweep, name, spec and model is resumed: its status becomes running; a
  // finished one is returned finished, as it is. A spec that differs only in a larger
  // `search.trials` extends the study, finished or not (event study_extended). The model's folder
  // may change, its hash may not. Any other difference is a conflict that names keys and values.
  Result<StudyRow> create_or_resume_study(const std::string& sweep, const StudySpec& spec,
                                          const std::string& model_hash,
                                          const ModelGeometry& geometry, int64_t utc_ms);
  Status update_study(const StudyRow& study);  // class, status, reason, reference, finished
  Status put_groups(int64_t study_id, const std::vector<std::vector<int>>& layers,
                    const std::vector<std::vector<Pair>>& candidates);
  // Insert or update by (study_id, number). Errors: numerics (a number is not finite), conflict
  // (another trial of the study, other than the baseline, has this map).
  Status put_trial(const TrialRow& trial);
  Result<std::vector<StudyRow>> studies() const;
  // By "sweep/name", name, or id; errors: not_found gives the nearest name, bad_input the sweeps
  // when a bare name is in several.
  Result<StudyRow> study(const std::string& name) const;
  Result<std::vector<TrialRow>> trials(int64_t study_id) const;  // by number
  // Non-dominated complete trials, by bytes, without the baseline (number -1). Of trials with
  // equal bytes and loss the one with the lowest number stands for all.
  Result<std::vector<TrialRow>> front(int64_t study_id) const;

  // --- measurements
  // Idempotent by key; returns how many were new. Example hashes are 64 hex digits. A key that is
  // there with another outcome keeps its first value, and an event measurement_conflict names the
  // fields that differ. Errors: numerics (NaN or infinity), bad_input (a value out of range);
  // then nothing of the call is stored.
  Result<int64_t> put_measurements(const MeasurementScope& scope,
                                   const std::vector<Measurement>& measurements,
                                   const std::string& worker_id, bool batch_invariant,
                                   int64_t utc_ms);
  // example_hash -> measurement, for those of `example_hashes` that are there.
  Result<std::map<std::string, Measurement>> measurements(
      const MeasurementScope& scope, const std::vector<std::string>& example_hashes) const;

  // By task, split and model; empty when nothing was measured under that map (a full id).
  Result<std::vector<MeasuredScope>> measured_scopes(const std::string& map_id) const;
  // All of a scope, by example hash, without tokens and timings.
  Result<std::map<std::string, Measurement>> measurements(const MeasuredScope& scope) const;

  // --- bookkeeping
  Status put_unit(const std::string& unit_id, int64_t study_id, const std::string& kind,
                  const std::string& state, int attempts, const std::string& worker_id,
                  const std::string& failure, double wall_ms, int64_t utc_ms);
  Status put_worker(const WorkerRow& worker);
  Result<std::vector<WorkerRow>> workers() const;
  Status add_event(int64_t study_id, const std::string& kind, const std::string& detail,
                   int64_t utc_ms);
  Result<std::vector<EventRow>> events(int64_t study_id, int64_t limit) const;  // newest first
  Result<DatabaseInfo> info() const;

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::store
