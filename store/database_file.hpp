// Opening a database file: what kind of file it is, its locks, its settings. Internal to store/.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "store/connection.hpp"
#include "store/store.hpp"
#include "store/writer_lock.hpp"

namespace kvsweep::store {

struct DatabaseFile {
  std::optional<WriterLock> lock;  // held by writers; released after the connection closes
  std::unique_ptr<Connection> connection;
};

// As Store::open describes. The path is made absolute with symbolic links resolved, so that two
// names of one file take one lock.
Result<DatabaseFile> open_database(const std::string& path, const OpenOptions& options);

}  // namespace kvsweep::store
