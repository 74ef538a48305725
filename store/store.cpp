#include "store/store.hpp"

#include <sqlite3.h>

#include <filesystem>
#include <utility>

#include "store/state.hpp"
#include "store/writer_lock.hpp"

namespace kvsweep::store {

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const std::string& path, const OpenOptions& options) {
  auto state = std::make_unique<State>();
  KVSWEEP_ASSIGN(state->file, open_database(path, options));
  state->writable = options.mode == OpenMode::read_write;
  return Store(std::move(state));
}

Status Store::transaction(const std::function<Status()>& body) {
  if (!state_->writable) {
    return Error{ErrorCode::internal, "a transaction was begun on " + state_->connection().path() +
                                          ", which was opened for reading"};
  }
  return state_->connection().transaction(body);
}

std::string sqlite_version() {
  return sqlite3_libversion();
}

Result<DatabaseInfo> Store::info() const {
  return state_->read([&]() -> Result<DatabaseInfo> {
    Connection& connection = state_->connection();
    DatabaseInfo info;
    info.path = connection.path();
    info.sqlite_version = sqlite_version();
    Query version = connection.query("PRAGMA user_version");
    if (version.step()) info.schema_version = static_cast<int>(version.integer(0));
    info.writer_may_live = writer_may_live(info.path);
    std::error_code error;
    for (const char* suffix : {"", "-wal"}) {
      const auto bytes = std::filesystem::file_size(info.path + suffix, error);
      if (!error) info.file_bytes += static_cast<int64_t>(bytes);
    }
    for (const char* table :
         {"models", "schemes", "tasks", "maps", "sensitivities", "sweeps", "studies", "groups",
          "trials", "units", "scopes", "examples", "measurements", "workers", "events"}) {
      info.rows[table] =
          connection.database().execAndGet(std::string("SELECT count(*) FROM ") + table).getInt64();
    }
    return info;
  });
}

std::string_view to_string(StudyStatus status) {
  switch (status) {
    case StudyStatus::running:
      return "running";
    case StudyStatus::finished:
      return "finished";
    case StudyStatus::stopped:
      return "stopped";
    case StudyStatus::failed:
      return "failed";
  }
  return "failed";
}

std::string_view to_string(TrialState state) {
  switch (state) {
    case TrialState::asked:
      return "asked";
    case TrialState::complete:
      return "complete";
    case TrialState::infeasible:
      return "infeasible";
    case TrialState::failed:
      return "failed";
  }
  return "failed";
}

Result<StudyStatus> study_status_from(const std::string& name) {
  for (const auto status :
       {StudyStatus::running, StudyStatus::finished, StudyStatus::stopped, StudyStatus::failed}) {
    if (to_string(status) == name) return status;
  }
  return bad_input("the database holds the unknown study status \"" + name + "\"");
}

Result<TrialState> trial_state_from(const std::string& name) {
  for (const auto state :
       {TrialState::asked, TrialState::complete, TrialState::infeasible, TrialState::failed}) {
    if (to_string(state) == name) return state;
  }
  return bad_input("the database holds the unknown trial state \"" + name + "\"");
}

}  // namespace kvsweep::store
