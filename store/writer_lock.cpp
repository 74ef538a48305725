#include "store/writer_lock.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace kvsweep::store {

namespace {

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

struct Holder {
  std::string pid = "unknown";
  std::string host = "unknown";
};

Holder read_holder(int fd) {
  char text[320] = {};
  const ssize_t length = ::pread(fd, text, sizeof text - 1, 0);
  if (length <= 0) return {};
  const std::string content(text, static_cast<size_t>(length));
  const size_t space = content.find(' ');
  const size_t end = content.find('\n');
  if (space == std::string::npos || end == std::string::npos || space > end) return {};
  return {content.substr(0, space), content.substr(space + 1, end - space - 1)};
}

Error held_by_other(int fd, const std::string& database_path) {
  const Holder holder = read_holder(fd);
  return {ErrorCode::conflict,
          "another process (pid " + holder.pid + " on host " + holder.host + ") is writing " +
              database_path +
              "; wait until it ends, stop it, or choose another database with --db"};
}

// What the holder writes is only for the message above, so that a full disk does not matter.
void write_holder(int fd) {
  const std::string holder = std::to_string(::getpid()) + ' ' + host_name() + '\n';
  if (::ftruncate(fd, 0) != 0) return;
  if (::pwrite(fd, holder.data(), holder.size(), 0) < 0) return;
}

}  // namespace

bool writer_may_live(const std::string& database_path) {
  const int fd = ::open((database_path + ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;
  const Holder holder = read_holder(fd);
  ::close(fd);
  pid_t pid = 0;
  const auto [stop, error] =
      std::from_chars(holder.pid.data(), holder.pid.data() + holder.pid.size(), pid);
  if (error != std::errc() || pid <= 0 || holder.host != host_name()) return true;
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

Result<WriterLock> WriterLock::take(const std::string& database_path) {
  const std::string path = database_path + ".lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    return io_error("cannot write " + path + ": " + std::strerror(errno) +
                    "; the folder of a database must be writable (choose another with --db)");
  }
  WriterLock lock(fd);
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return held_by_other(fd, database_path);
    return io_error("cannot lock " + path + ": " + std::strerror(errno) +
                    "; put the database on a local disk");
  }
  write_holder(fd);
  return lock;
}

WriterLock::WriterLock(WriterLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

WriterLock& WriterLock::operator=(WriterLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

WriterLock::~WriterLock() {
  if (fd_ >= 0) ::close(fd_);  // releases the lock
}

}  // namespace kvsweep::store
