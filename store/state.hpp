// What the translation units of Store share. Internal to store/.
#pragma once

#include <optional>
#include <string>

#include "store/database_file.hpp"
#include "store/store.hpp"

namespace kvsweep::store {

struct Store::State {
  DatabaseFile file;
  bool writable = false;

  Connection& connection() const { return *file.connection; }

  // Every write goes through here.
  template <typename Body>
  auto write(Body&& body) -> decltype(body()) {
    if (!writable) {
      return Error{ErrorCode::internal, "the database " + connection().path() +
                                            " was opened for reading and something tried to write"};
    }
    return connection().write(std::forward<Body>(body));
  }

  template <typename Body>
  auto read(Body&& body) const -> decltype(body()) {
    return connection().guarded(std::forward<Body>(body));
  }

  // Row ids of identities. Error (not_found) says what must be put first.
  Result<int64_t> model_row(const std::string& model_hash) const;
  Result<int64_t> map_row(const std::string& map_id) const;
  Result<int64_t> task_row(const std::string& protocol_hash) const;
};

// `study_id` 0 = none; `detail` is a JSON object. Throws SQLite::Exception.
Status write_event(Connection& connection, int64_t study_id, const std::string& kind,
                   const std::string& detail, int64_t utc_ms);

// Row of a worker, made when it is not known yet; nullopt for "".
Result<std::optional<int64_t>> worker_row(Connection& connection, const std::string& worker_id,
                                          int64_t utc_ms);

// Stored names of the enumerations of store.hpp.
Result<StudyStatus> study_status_from(const std::string& name);
Result<TrialState> trial_state_from(const std::string& name);

}  // namespace kvsweep::store
