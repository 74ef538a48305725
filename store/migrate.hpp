// Migrations: ordered SQL steps that bring a file to this program's version. Internal to store/.
#pragma once

#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "store/connection.hpp"

namespace kvsweep::store {

// "KVSW": marks our files for `file` and for us (PRAGMA application_id).
inline constexpr int kApplicationId = 0x4B565357;

struct Migration {
  int version;  // the user_version it leads to
  std::string_view name;
  std::string_view sql;
};
const std::vector<Migration>& migrations();  // ascending from 1, without gaps

enum class FileKind { empty, ours, foreign };

struct FileIdentity {
  FileKind kind = FileKind::empty;
  int version = 0;
};

// Reads only. An SQLite file without our application id that has tables is foreign.
Result<FileIdentity> identify(Connection& connection);

// Runs the steps of `steps` above `identity.version`, each in its own transaction with a foreign
// key check before its commit; the file is copied to PATH.bak-vN first when it has a version.
Status migrate(Connection& connection, const FileIdentity& identity,
               const std::vector<Migration>& steps);

}  // namespace kvsweep::store
