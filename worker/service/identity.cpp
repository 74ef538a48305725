#include "worker/service/identity.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>

#include "core/text.hpp"

namespace kvsweep::service {

int available_cores() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return replace_invalid_utf8(line.substr(colon + 2));
    }
  }
  return "unknown processor";
}

int64_t memory_bytes() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return replace_invalid_utf8(name.data());
}

wire::Hello make_hello(const WorkerOptions& options, const std::string& version, int threads,
                       const std::string& numerics_class) {
  const std::string host = host_name();
  return {.worker_id =
              options.worker_id.empty() ? fmt::format("{}-{}", host, getpid()) : options.worker_id,
          .host = host,
          .pid = getpid(),
          .version = version,
          .device = "cpu",
          .device_name = processor_name(),
          .numerics_class = numerics_class,
          .threads = threads,
          .memory_bytes = memory_bytes()};
}

}  // namespace kvsweep::service
