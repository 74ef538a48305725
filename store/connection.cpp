#include "store/connection.hpp"

#include <sqlite3.h>

#include <utility>

namespace kvsweep::store {

Query::~Query() {
  if (statement_ == nullptr) return;
  statement_->tryReset();
  statement_->clearBindings();  // sqlite3_clear_bindings never fails
}

int64_t Query::run() {
  while (statement_->executeStep()) {
  }
  return statement_->getChanges();
}

std::optional<double> Query::maybe_real(int column) const {
  const SQLite::Column value = statement_->getColumn(column);
  if (value.isNull()) return std::nullopt;
  return value.getDouble();
}

std::string_view Query::bytes(int column) const {
  const SQLite::Column value = statement_->getColumn(column);
  const auto* data = static_cast<const char*>(value.getBlob());
  return {data, data == nullptr ? 0 : static_cast<size_t>(value.getBytes())};
}

Connection::Connection(const std::string& path, const std::string& uri, int flags)
    : path_(path), database_(uri, flags) {}

Query Connection::query(const char* sql) {
  std::unique_ptr<SQLite::Statement>& slot = statements_[sql];
  if (!slot) slot = std::make_unique<SQLite::Statement>(database_, sql);
  return Query(*slot);
}

Error Connection::fail(const SQLite::Exception& exception) {
  Error error = describe(exception, path_);
  if (in_transaction_ && !broken_) broken_ = error;
  return error;
}

void Connection::roll_back() noexcept {
  // SQLite may have rolled back by itself (disk full, I/O error).
  if (sqlite3_get_autocommit(database_.getHandle()) == 0) database_.tryExec("ROLLBACK");
}

Status Connection::transaction(const std::function<Status()>& body) {
  if (in_transaction_) {
    return Error{ErrorCode::internal, "a store transaction was begun inside another one"};
  }
  KVSWEEP_TRY(guarded([&]() -> Status {
    database_.exec("BEGIN IMMEDIATE");
    return {};
  }));
  in_transaction_ = true;
  broken_.reset();
  Status status;
  try {
    status = body();
  } catch (...) {
    roll_back();
    in_transaction_ = false;
    throw;
  }
  if (status.ok() && broken_) status = *broken_;
  if (status.ok()) {
    status = guarded([&]() -> Status {
      database_.exec("COMMIT");
      return {};
    });
  }
  if (!status.ok()) roll_back();
  in_transaction_ = false;
  return status;
}

Error describe(const SQLite::Exception& exception, const std::string& path) {
  const std::string what = exception.what();
  switch (exception.getErrorCode() & 0xff) {
    case SQLITE_FULL:
      return io_error("cannot write " + path +
                      ": the disk is full; free some space there and run the same command again "
                      "(what was recorded is kept)");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return io_error("cannot write " + path + ": the file or its folder is read-only (" + what +
                      "); make both writable or choose another database with --db");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::conflict,
              path +
                  " stayed locked by another program (an open transaction in an sqlite3 shell?); "
                  "close it and run the same command again"};
    case SQLITE_CANTOPEN:
      return io_error("cannot open " + path + " (" + what +
                      "); check that its folder exists and may be read and written");
    case SQLITE_NOTADB:
      return bad_input(path + " is not an SQLite database; give the path of a kvsweep database");
    case SQLITE_CORRUPT:
      return bad_input(path + " is damaged or cut short (" + what +
                       "); restore it from a copy, or save what can be read with: sqlite3 " + path +
                       " .recover");
    case SQLITE_IOERR:
      return io_error("reading or writing " + path + " failed (" + what +
                      "); check the disk and its free space, then run the same command again");
    case SQLITE_NOMEM:
      return {ErrorCode::oom, "no memory left while using " + path + "; close other programs"};
    default:
      return {ErrorCode::internal, "the database " + path + " refused a statement: " + what};
  }
}

}  // namespace kvsweep::store
