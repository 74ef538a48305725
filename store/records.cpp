// Units, workers and events: what happened, for people and for restarts.
#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "store/state.hpp"

namespace kvsweep::store {

Status write_event(Connection& connection, int64_t study_id, const std::string& kind,
                   const std::string& detail, int64_t utc_ms) {
  std::optional<int64_t> study;
  if (study_id != 0) study = study_id;
  connection.query("INSERT INTO events (study_id, utc_ms, kind, detail) VALUES (?,?,?,?)")
      .with(study, utc_ms, kind, detail)
      .run();
  return {};
}

Result<std::optional<int64_t>> worker_row(Connection& connection, const std::string& worker_id,
                                          int64_t utc_ms) {
  if (worker_id.empty()) return std::optional<int64_t>();
  connection
      .query(
          "INSERT OR IGNORE INTO workers (worker_id, host, device, device_name, numerics_class, "
          "version, first_seen_utc_ms, last_seen_utc_ms, units_done, units_failed) "
          "VALUES (?,'','','','','',?,?,0,0)")
      .with(worker_id, utc_ms, utc_ms)
      .run();
  Query row = connection.query("SELECT id FROM workers WHERE worker_id = ?");
  row.with(worker_id);
  if (!row.step()) return Error{ErrorCode::internal, "worker " + worker_id + " was not recorded"};
  return std::optional<int64_t>(row.integer(0));
}

Status Store::put_unit(const std::string& unit_id, int64_t study_id, const std::string& kind,
                       const std::string& state, int attempts, const std::string& worker_id,
                       const std::string& failure, double wall_ms, int64_t utc_ms) {
  return state_->write([&]() -> Status {
    Connection& connection = state_->connection();
    KVSWEEP_ASSIGN(const auto worker, worker_row(connection, worker_id, utc_ms));
    std::optional<int64_t> study;
    if (study_id != 0) study = study_id;
    connection
        .query(
            "INSERT INTO units (unit_id, study_id, kind, state, attempts, worker, failure, "
            "wall_ms, utc_ms) VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (unit_id) DO UPDATE SET "
            "state = excluded.state, attempts = excluded.attempts, worker = excluded.worker, "
            "failure = excluded.failure, wall_ms = excluded.wall_ms, utc_ms = excluded.utc_ms")
        .with(unit_id, study, kind, state, attempts, worker, failure, wall_ms, utc_ms)
        .run();
    return {};
  });
}

// A restarted worker keeps its row and the time it was first seen.
Status Store::put_worker(const WorkerRow& worker) {
  return state_->write([&]() -> Status {
    state_->connection()
        .query(
            "INSERT INTO workers (worker_id, host, device, device_name, numerics_class, "
            "version, first_seen_utc_ms, last_seen_utc_ms, units_done, units_failed) "
            "VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (worker_id) DO UPDATE SET "
            "host = excluded.host, device = excluded.device, "
            "device_name = excluded.device_name, numerics_class = excluded.numerics_class, "
            "version = excluded.version, "
            "first_seen_utc_ms = min(first_seen_utc_ms, excluded.first_seen_utc_ms), "
            "last_seen_utc_ms = max(last_seen_utc_ms, excluded.last_seen_utc_ms), "
            "units_done = excluded.units_done, units_failed = excluded.units_failed")
        .with(worker.worker_id, worker.host, worker.device, worker.device_name,
              worker.numerics_class, worker.version, worker.first_seen_utc_ms,
              worker.last_seen_utc_ms, worker.units_done, worker.units_failed)
        .run();
    return {};
  });
}

Result<std::vector<WorkerRow>> Store::workers() const {
  return state_->read([&]() -> Result<std::vector<WorkerRow>> {
    std::vector<WorkerRow> all;
    Query row = state_->connection().query(
        "SELECT worker_id, host, device, device_name, numerics_class, version, first_seen_utc_ms, "
        "last_seen_utc_ms, units_done, units_failed FROM workers ORDER BY worker_id");
    while (row.step()) {
      all.push_back({row.text(0), row.text(1), row.text(2), row.text(3), row.text(4), row.text(5),
                     row.integer(6), row.integer(7), row.integer(8), row.integer(9)});
    }
    return all;
  });
}

Status Store::add_event(int64_t study_id, const std::string& kind, const std::string& detail,
                        int64_t utc_ms) {
  if (!Json::accept(detail)) {
    return Error{ErrorCode::internal, "the detail of event " + kind + " is not JSON: " + detail};
  }
  return state_->write(
      [&] { return write_event(state_->connection(), study_id, kind, detail, utc_ms); });
}

Result<std::vector<EventRow>> Store::events(int64_t study_id, int64_t limit) const {
  return state_->read([&]() -> Result<std::vector<EventRow>> {
    std::vector<EventRow> all;
    Query row = state_->connection().query(
        "SELECT id, coalesce(study_id, 0), utc_ms, kind, detail FROM events "
        "WHERE ?1 = 0 OR study_id = ?1 ORDER BY id DESC LIMIT ?2");
    row.with(study_id, limit);
    while (row.step()) {
      all.push_back({row.integer(0), row.integer(1), row.integer(2), row.text(3), row.text(4)});
    }
    return all;
  });
}

}  // namespace kvsweep::store
