#include "store/migrate.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace kvsweep::store {

namespace {

int64_t pragma(Connection& connection, const char* sql) {
  SQLite::Statement statement(connection.database(), sql);
  return statement.executeStep() ? statement.getColumn(0).getInt64() : 0;
}

// A name that is never half a copy: made beside it, synced, renamed. A copy of the same version
// from an interrupted attempt is replaced, since no migration of that attempt was committed.
Status back_up(Connection& connection, int version) {
  const std::string target = connection.path() + ".bak-v" + std::to_string(version);
  const std::string part = target + ".part";
  ::unlink(part.c_str());
  SQLite::Statement copy(connection.database(), "VACUUM INTO ?");
  copy.bind(1, part);
  copy.exec();
  const int fd = ::open(part.c_str(), O_RDWR | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!synced || ::rename(part.c_str(), target.c_str()) != 0) {
    return io_error("cannot keep a copy of the database as " + target +
                    " before migrating it: " + std::strerror(synced ? errno : error) +
                    "; free space there and run the same command again");
  }
  return {};
}

Status check_foreign_keys(Connection& connection, const Migration& step) {
  SQLite::Statement check(connection.database(), "PRAGMA foreign_key_check");
  if (!check.executeStep()) return {};
  return Error{ErrorCode::internal, "migration " + std::to_string(step.version) + " (" +
                                        std::string(step.name) + ") would leave rows of table " +
                                        check.getColumn(0).getString() +
                                        " without what they refer to; nothing was changed"};
}

Status run_step(Connection& connection, const Migration& step) {
  return connection.transaction([&]() -> Status {
    return connection.guarded([&]() -> Status {
      SQLite::Database& database = connection.database();
      database.exec(std::string(step.sql));
      KVSWEEP_TRY(check_foreign_keys(connection, step));
      database.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
      database.exec("PRAGMA user_version = " + std::to_string(step.version));
      return {};
    });
  });
}

}  // namespace

Result<FileIdentity> identify(Connection& connection) {
  return connection.guarded([&]() -> Result<FileIdentity> {
    const int64_t tables = pragma(connection, "SELECT count(*) FROM sqlite_schema");
    const int64_t id = pragma(connection, "PRAGMA application_id");
    const int64_t version = pragma(connection, "PRAGMA user_version");
    if (id == kApplicationId && version >= 1) {
      return FileIdentity{FileKind::ours, static_cast<int>(version)};
    }
    if (id == 0 && version == 0 && tables == 0) return FileIdentity{FileKind::empty, 0};
    return FileIdentity{FileKind::foreign, static_cast<int>(version)};
  });
}

Status migrate(Connection& connection, const FileIdentity& identity,
               const std::vector<Migration>& steps) {
  if (steps.empty() || steps.back().version <= identity.version) return {};
  if (identity.version > 0) {
    KVSWEEP_TRY(connection.guarded([&] { return back_up(connection, identity.version); }));
  }
  // A step may rebuild a table that others refer to; the check at its end takes their place.
  const auto foreign_keys = [&](const char* sql) {
    return connection.guarded([&]() -> Status {
      connection.database().exec(sql);
      return {};
    });
  };
  KVSWEEP_TRY(foreign_keys("PRAGMA foreign_keys = OFF"));
  Status status;
  for (const Migration& step : steps) {
    if (step.version <= identity.version) continue;
    status = run_step(connection, step);
    if (!status.ok()) break;
  }
  KVSWEEP_TRY(foreign_keys("PRAGMA foreign_keys = ON"));
  return status;
}

}  // namespace kvsweep::store
