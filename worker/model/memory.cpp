#include "worker/model/memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace kvsweep::model {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

int64_t read_number(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : kUnknown;
}

int64_t machine_available() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  int64_t kib = 0;
  std::string unit;
  while (file >> name >> kib) {
    std::getline(file, unit);
    if (name == "MemAvailable:") return kib * 1024;
  }
  return kUnknown;
}

int64_t left_of(const std::string& limit_path, const std::string& used_path) {
  const int64_t limit = read_number(limit_path);
  const int64_t used = read_number(used_path);
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return std::max<int64_t>(0, limit - used);
}

}  // namespace

int64_t available_memory() {
  const std::string root = "/sys/fs/cgroup/";
  return std::min(
      {machine_available(), left_of(root + "memory.max", root + "memory.current"),
       left_of(root + "memory/memory.limit_in_bytes", root + "memory/memory.usage_in_bytes")});
}

}  // namespace kvsweep::model
