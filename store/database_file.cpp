#include "store/database_file.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "store/file_system.hpp"
#include "store/migrate.hpp"

namespace kvsweep::store {

namespace {

namespace fs = std::filesystem;

constexpr int kBusyTimeoutMs = 20000;

Error not_a_database(const std::string& path) {
  return bad_input(path + " is not an SQLite database; give the path of a kvsweep database");
}

Result<std::string> resolve(const std::string& path) {
  if (path.empty()) return bad_input("the database path is empty; give one with --db");
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return io_error("cannot resolve the path " + path + ": " + error.message());
  if (fs::is_directory(absolute, error)) {
    return bad_input(path + " is a folder; give the path of a database file in it");
  }
  if (!fs::is_directory(absolute.parent_path(), error)) {
    return not_found("the folder " + absolute.parent_path().string() +
                     " does not exist; create it or choose another database with --db");
  }
  // SQLite takes a file of one byte for an empty one and would write over it.
  if (fs::file_size(absolute, error) == 1 && !error) return not_a_database(path);
  return absolute.string();
}

Status check_file_system(const std::string& path, const OpenOptions& options) {
  if (options.allow_network_fs) return {};
  const std::string folder = fs::path(path).parent_path().string();
  const std::string name = network_fs_of(folder);
  if (name.empty()) return {};
  return bad_input(path + " lies on a network file system (" + name +
                   "), where SQLite can lose data when two hosts use one file; put the database "
                   "on a local disk, or pass --allow-network-fs if only one host ever opens it");
}

// A URI with the characters that would end its path escaped.
std::string file_uri(const std::string& path, const std::string& parameters) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += '%';
      uri += kHex[static_cast<unsigned char>(c) >> 4];
      uri += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      uri += c;
    }
  }
  return uri + "?" + parameters;
}

Result<std::unique_ptr<Connection>> connect(const std::string& path, const std::string& parameters,
                                            int flags) {
  try {
    auto connection =
        std::make_unique<Connection>(path, file_uri(path, parameters), flags | SQLITE_OPEN_URI);
    connection->database().setBusyTimeout(kBusyTimeoutMs);
    return connection;
  } catch (const SQLite::Exception& exception) {
    return describe(exception, path);
  }
}

Status execute(Connection& connection, const char* sql) {
  return connection.guarded([&]() -> Status {
    connection.database().exec(sql);
    return {};
  });
}

Error not_ours(const std::string& path) {
  return bad_input(path +
                   " is an SQLite database of another program; give the path of a kvsweep "
                   "database, or of a file that does not exist yet");
}

Error too_new(const std::string& path, int version) {
  return {ErrorCode::conflict, path + " has schema version " + std::to_string(version) +
                                   " and this kvsweep knows versions up to " +
                                   std::to_string(kSchemaVersion) +
                                   "; use the newer kvsweep that wrote it"};
}

Status use_wal(Connection& connection) {
  return connection.guarded([&]() -> Status {
    const std::string mode =
        connection.database().execAndGet("PRAGMA journal_mode = WAL").getString();
    if (mode == "wal") return {};
    return io_error("cannot switch " + connection.path() + " to write-ahead logging (SQLite says " +
                    mode + "); its file system lacks shared memory, put it on a local disk");
  });
}

// Codecs of the program that writes: views read the bits from here.
Status write_codecs(Connection& connection) {
  return connection.write([&]() -> Status {
    for (const CodecInfo& codec : codecs()) {
      connection
          .query(
              "INSERT INTO codecs (name, label, bits) VALUES (?, ?, ?) ON CONFLICT (name) DO "
              "UPDATE SET label = excluded.label, bits = excluded.bits "
              "WHERE label <> excluded.label OR bits <> excluded.bits")
          .with(codec.name, codec.label, codec.bits)
          .run();
    }
    return {};
  });
}

// WAL: readers never wait for the writer. FULL: a commit is on the disk when it returns.
// No mmap (and only this connection checkpoints): SQLite before 3.51.3 can damage a file when two
// connections checkpoint at once.
Result<DatabaseFile> open_writer(const std::string& path) {
  DatabaseFile file;
  KVSWEEP_ASSIGN(file.lock, WriterLock::take(path));
  KVSWEEP_ASSIGN(file.connection,
                 connect(path, "mode=rwc", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  Connection& connection = *file.connection;
  KVSWEEP_ASSIGN(const FileIdentity identity, identify(connection));
  if (identity.kind == FileKind::foreign) return not_ours(path);
  if (identity.version > kSchemaVersion) return too_new(path, identity.version);
  KVSWEEP_TRY(execute(connection,
                      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; "
                      "PRAGMA journal_size_limit = 67108864"));
  KVSWEEP_TRY(use_wal(connection));
  KVSWEEP_TRY(migrate(connection, identity, migrations()));
  KVSWEEP_TRY(write_codecs(connection));
  return file;
}

// Without its -wal a database in WAL mode can only be read by creating it, unless nobody can
// write: then SQLite may treat the file as immutable.
std::string reader_parameters(const std::string& path) {
  std::error_code error;
  const bool wal = fs::exists(path + "-wal", error);
  const std::string folder = fs::path(path).parent_path().string();
  return !wal && on_read_only_fs(folder) ? "mode=ro&immutable=1" : "mode=ro";
}

Error explain_reader(Error error, const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  if (error.code == ErrorCode::io && ::access(path.c_str(), R_OK) == 0 &&
      ::access(folder.c_str(), W_OK) != 0) {
    error.message = "cannot read " + path + " in place: its folder " + folder +
                    " is read-only for you, and SQLite must create " + path +
                    "-wal and -shm there; copy the database (with its -wal, if any) to a folder "
                    "that you can write and open the copy";
  }
  return error;
}

Result<DatabaseFile> open_reader(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return not_found("there is no database at " + path);
  }
  DatabaseFile file;
  auto connected = connect(path, reader_parameters(path), SQLITE_OPEN_READONLY);
  if (!connected.ok()) return explain_reader(connected.error(), path);
  file.connection = std::move(connected).value();
  Connection& connection = *file.connection;
  sqlite3_db_config(connection.database().getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                    nullptr);
  const auto identity = identify(connection);
  if (!identity.ok()) return explain_reader(identity.error(), path);
  if (identity->kind == FileKind::foreign) return not_ours(path);
  if (identity->kind == FileKind::empty) {
    return bad_input(path + " is empty; give the path of a kvsweep database");
  }
  if (identity->version > kSchemaVersion) return too_new(path, identity->version);
  if (identity->version < kSchemaVersion) {
    return Error{ErrorCode::conflict,
                 path + " has the older schema version " + std::to_string(identity->version) +
                     " (this kvsweep reads " + std::to_string(kSchemaVersion) +
                     "); kvsweep tune, evaluate and import migrate it, after a backup"};
  }
  KVSWEEP_TRY(execute(connection, "PRAGMA query_only = ON; PRAGMA mmap_size = 0"));
  return file;
}

}  // namespace

Result<DatabaseFile> open_database(const std::string& path, const OpenOptions& options) {
  KVSWEEP_ASSIGN(const std::string resolved, resolve(path));
  KVSWEEP_TRY(check_file_system(resolved, options));
  return options.mode == OpenMode::read_only ? open_reader(resolved) : open_writer(resolved);
}

}  // namespace kvsweep::store
