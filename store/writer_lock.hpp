// WriterLock: at most one process writes a database. Internal to store/.
//
// An advisory flock on PATH.lock, which holds "PID HOST" for the message to the second writer.
// It lies beside the database and not on it: closing any descriptor of a file drops the POSIX
// locks that SQLite holds on it in the same process. The kernel releases the lock when the process
// ends, however it ends; the file is never removed, since removing it would let two processes lock
// two different files of one name.
#pragma once

#include <memory>
#include <string>

#include "core/result.hpp"

namespace kvsweep::store {

// False when no process can be writing the database: none ever took its lock, or the one that did
// last was on this host and is gone. Takes no lock itself, so that no writer is ever turned away.
bool writer_may_live(const std::string& database_path);

class WriterLock {
 public:
  // Error: conflict when another process (or another Store of this one) holds it; io when the
  // lock file cannot be made.
  static Result<WriterLock> take(const std::string& database_path);

  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&& other) noexcept;
  ~WriterLock();

 private:
  explicit WriterLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace kvsweep::store
