// Connection: one SQLite connection with prepared statements kept, and its exceptions turned into
// errors that a person can act on. Internal to store/. Not thread-safe.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::store {

// The columns of a row, by position from 0.
class Query {
 public:
  explicit Query(SQLite::Statement& statement) : statement_(&statement) {}
  Query(Query&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query();  // resets the statement, so that no read transaction stays open

  // Binds all parameters, in order.
  template <typename... Values>
  Query& with(const Values&... values) {
    int index = 0;
    (bind(++index, values), ...);
    return *this;
  }

  bool step() { return statement_->executeStep(); }  // false = no more rows
  int64_t run();                                     // to the end; rows changed

  int64_t integer(int column) const { return statement_->getColumn(column).getInt64(); }
  double real(int column) const { return statement_->getColumn(column).getDouble(); }
  std::optional<double> maybe_real(int column) const;
  std::string text(int column) const { return statement_->getColumn(column).getString(); }
  std::string_view bytes(int column) const;  // valid until the next step

 private:
  void bind(int index, int64_t value) { statement_->bind(index, value); }
  void bind(int index, int value) { statement_->bind(index, value); }
  void bind(int index, bool value) { statement_->bind(index, value ? 1 : 0); }
  void bind(int index, double value) { statement_->bind(index, value); }
  void bind(int index, const std::string& value) { statement_->bind(index, value); }
  void bind(int index, const char* value) { statement_->bind(index, value); }
  void bind(int index, std::string_view value) { statement_->bind(index, std::string(value)); }
  void bind(int index, const std::vector<uint8_t>& blob) {
    statement_->bind(index, static_cast<const void*>(blob.data()), static_cast<int>(blob.size()));
  }
  template <typename T>
  void bind(int index, const std::optional<T>& value) {
    if (value) {
      bind(index, *value);
    } else {
      statement_->bind(index);  // NULL
    }
  }

  SQLite::Statement* statement_;
};

class Connection {
 public:
  // `flags` of sqlite3_open_v2. Throws SQLite::Exception.
  Connection(const std::string& path, const std::string& uri, int flags);

  // A prepared statement, kept for the life of the connection. `sql` must be a literal: its
  // address is the key. One Query per statement at a time.
  Query query(const char* sql);

  SQLite::Database& database() { return database_; }
  const std::string& path() const { return path_; }

  // Runs `body` (which returns a Status or Result) and turns what SQLite throws into an Error.
  template <typename Body>
  auto guarded(Body&& body) -> decltype(body()) {
    try {
      return body();
    } catch (const SQLite::Exception& exception) {
      return fail(exception);
    }
  }

  // Like `guarded`, inside a transaction: the open one, or its own.
  template <typename Body>
  auto write(Body&& body) -> decltype(body()) {
    if (in_transaction_) return write_inside(std::forward<Body>(body));
    decltype(body()) result = Error{};
    const Status status = transaction([&]() -> Status {
      result = guarded(body);
      if (!result.ok()) return result.error();
      return {};
    });
    if (!status.ok()) return status.error();
    return result;
  }

  // BEGIN IMMEDIATE, `body`, COMMIT. Rolls back when `body` returns an error or throws, and when
  // a statement inside it failed even if `body` went on: half a write is never committed.
  Status transaction(const std::function<Status()>& body);

 private:
  template <typename Body>
  auto write_inside(Body&& body) -> decltype(body()) {
    if (broken_) return *broken_;
    return guarded(std::forward<Body>(body));
  }

  Error fail(const SQLite::Exception& exception);
  void roll_back() noexcept;

  std::string path_;
  SQLite::Database database_;
  std::unordered_map<const char*, std::unique_ptr<SQLite::Statement>> statements_;
  bool in_transaction_ = false;
  std::optional<Error> broken_;  // the first SQLite failure inside the open transaction
};

// One sentence: what happened to the file at `path`, and what to do.
Error describe(const SQLite::Exception& exception, const std::string& path);

}  // namespace kvsweep::store
