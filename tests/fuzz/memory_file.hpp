// A file that lies in memory, for readers that want a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace kvsweep::fuzz {

// One per process and name; never removed, its folder is /tmp/kvsweep-fuzz-PID.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& name) : fd_(memfd_create(name.c_str(), 0)) {
    folder_ = "/tmp/kvsweep-fuzz-" + std::to_string(getpid());
    path_ = folder_ + "/" + name;
    std::error_code code;
    std::filesystem::create_directories(folder_, code);
    std::filesystem::remove(path_, code);
    std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(fd_), path_, code);
    if (fd_ < 0 || code) std::abort();
    std::atexit(remove_folder);
  }

  const std::string& folder() const { return folder_; }
  const std::string& path() const { return path_; }

  void write(const uint8_t* data, size_t size) const {
    const bool written = ftruncate(fd_, static_cast<off_t>(size)) == 0 &&
                         pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size);
    if (!written) std::abort();
  }
  void write(const std::string& text) const {
    write(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }

 private:
  static void remove_folder() {
    std::error_code ignored;
    std::filesystem::remove_all("/tmp/kvsweep-fuzz-" + std::to_string(getpid()), ignored);
  }

  int fd_;
  std::string folder_;
  std::string path_;
};

// Ends the program, which the fuzzer reports with the input.
inline void require(bool condition) {
  if (!condition) std::abort();
}

// An error must name the file.
template <typename Result>
void require_named(const Result& result, const std::string& path) {
  require(result.ok() || result.error().message.find(path) != std::string::npos);
}

}  // namespace kvsweep::fuzz
