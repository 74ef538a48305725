#include "core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace kvsweep {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;  // /dev/zero must not fill the memory

// Closes a descriptor when a function leaves early.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

Error system_error(const std::string& what, const std::string& path) {
  const int number = errno;
  const ErrorCode code = number == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return {code, what + " " + path + ": " + std::strerror(number)};
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot write", path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

std::string temporary_name(const std::string& path) {
  static std::atomic<int> counter{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
}

// A device, pipe or socket cannot be replaced by a file of the same name: /dev/null must stay one.
bool is_special(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Status write_special(const std::string& path, std::string_view bytes) {
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) return system_error("cannot write", path);
  return write_all(fd.get(), bytes, path);
}

// A symbolic link stays one: the file it leads to is replaced.
std::string resolved(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

// A rename is durable only once the folder that holds the name is.
void sync_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) ::fsync(fd.get());
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  // A pipe that nobody writes is empty, instead of never opening; then reads wait as usual.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return system_error("cannot read", path);
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error("cannot read", path);
  if (S_ISDIR(info.st_mode)) return bad_input("cannot read " + path + ": it is a folder");

  std::string bytes;
  if (info.st_size > 0) bytes.reserve(static_cast<size_t>(info.st_size));
  char block[65536];
  while (true) {
    const ssize_t count = ::read(fd.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot read", path);
    if (count == 0) return bytes;
    if (bytes.size() > kMaxBytes) {
      return bad_input("cannot read " + path + ": it is larger than 1 GiB or never ends");
    }
    bytes.append(block, static_cast<size_t>(count));
  }
}

Status write_file_atomic(const std::string& name, std::string_view bytes) {
  if (is_special(name)) return write_special(name, bytes);
  const std::string path = resolved(name);
  const std::string temporary = temporary_name(path);
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return system_error("cannot write", path);
  Status written = write_all(fd.get(), bytes, path);
  if (written.ok() && ::fsync(fd.get()) != 0) written = system_error("cannot write", path);
  if (written.ok() && fd.close() != 0) written = system_error("cannot write", path);
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = system_error("cannot write", path);
  }
  if (!written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  sync_folder(path);
  return {};
}

}  // namespace kvsweep
