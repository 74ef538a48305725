#include "cli/doctor_checks.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/machine.hpp"
#include "cli/version.hpp"
#include "coordinator/coordinator.hpp"
#include "core/file.hpp"
#include "core/json_reader.hpp"
#include "core/task_protocol.hpp"
#include "core/text.hpp"
#include "store/file_system.hpp"
#include "store/store.hpp"

namespace kvsweep::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLittleSpace = int64_t{1} << 30;
constexpr int64_t kLittleMemory = int64_t{2} << 30;
constexpr rlim_t kFewFiles = 1024;

Finding versions() {
  return {Health::ok, "versions",
          fmt::format("kvsweep {}, SQLite {}, ZeroMQ {}", kVersion, store::sqlite_version(),
                      coordinator::zmq_version()),
          ""};
}

// The worker says who it is as JSON; keys that this version does not know are ignored.
std::string probe_text(const Json& probe) {
  JsonReader reader(probe, "probe");
  std::vector<std::string> parts;
  for (const char* key : {"version", "numerics_class", "device_name", "cuda"}) {
    if (!reader.has(key)) continue;
    const Json& value = probe.at(key);
    parts.push_back(std::string(key) + " " +
                    (value.is_string() ? value.get<std::string>() : shown(value)));
  }
  return join(parts, ", ");
}

Finding worker(const DoctorInput& input) {
  const Result<std::string> program = find_worker_program(input.worker_program);
  if (!program.ok()) {
    return {Health::fail, "worker", program.error().message,
            "build the target kvsweep-worker, or pass --worker-program"};
  }
  const Result<std::string> output = output_of({*program, "--probe", 30000});
  if (!output.ok()) {
    return {Health::fail, "worker", output.error().message,
            "run it by hand with --probe; a missing library is named there"};
  }
  const Result<Json> probe = parse_json(*output, *program);
  if (!probe.ok() || !probe->is_object()) {
    return {Health::warn, "worker", *program + " answers something that is not JSON",
            "use the kvsweep-worker of this release"};
  }
  const bool same = probe->value("version", Json()) == kVersion;
  return {same ? Health::ok : Health::warn, "worker", *program + ": " + probe_text(*probe),
          same ? "" : fmt::format("it is of another release than this kvsweep ({})", kVersion)};
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Finding database_folder(const DoctorInput& input) {
  const std::string folder = folder_of(input.database);
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return {Health::fail, "database folder", folder + " does not exist", "make it, or change --db"};
  }
  const std::string trial = folder + fmt::format("/.kvsweep-doctor-{}", ::getpid());
  const Status written = write_file_atomic(trial, "x");
  fs::remove(trial, error);
  if (!written.ok()) {
    return {Health::fail, "database folder", written.error().message,
            "change its permissions, free some space, or choose another place with --db"};
  }
  const std::string network = store::network_fs_of(folder);
  if (!network.empty()) {
    return {Health::fail, "database folder", folder + " lies on the network file system " + network,
            "use a local disk: SQLite's locks do not hold across machines"};
  }
  const fs::space_info space = fs::space(folder, error);
  const bool little = !error && space.available < static_cast<uintmax_t>(kLittleSpace);
  return {little ? Health::warn : Health::ok, "database folder",
          fmt::format("{} is writable and local, {} free", folder,
                      human_bytes(static_cast<double>(space.available))),
          little ? "free some space before a long study" : ""};
}

Finding database(const DoctorInput& input) {
  std::error_code ignored;
  if (!fs::exists(input.database, ignored)) {
    return {Health::ok, "database", input.database + " does not exist yet", ""};
  }
  const auto store = store::Store::open(input.database, {store::OpenMode::read_only, false});
  if (!store.ok()) {
    return {Health::fail, "database", store.error().message, "choose another one with --db"};
  }
  const auto info = store->info();
  if (!info.ok()) return {Health::fail, "database", info.error().message, "restore a backup"};
  return {Health::ok, "database",
          fmt::format("{}, schema {}, {}", input.database, info->schema_version,
                      human_bytes(static_cast<double>(info->file_bytes))),
          ""};
}

Finding data_sets(const DoctorInput& input) {
  std::vector<std::string> here;
  std::vector<std::string> missing;
  for (const TaskInfo& task : tasks()) {
    if (task.data.empty() || task.data == ".") continue;
    std::error_code ignored;
    const std::string name(task.data);
    const bool found =
        !input.data_dir.empty() && fs::is_directory(fs::path(input.data_dir) / name, ignored);
    std::vector<std::string>& list = found ? here : missing;
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  }
  const std::string advice =
      "put the sets into one folder and name it with --data-dir or KVSWEEP_DATA_DIR; generated "
      "tasks need none";
  if (input.data_dir.empty()) return {Health::warn, "data sets", "no folder given", advice};
  const std::string where = input.data_dir + ": " + (here.empty() ? "none" : join(here, ", "));
  if (missing.empty()) return {Health::ok, "data sets", where, ""};
  return {Health::warn, "data sets", where + "; missing " + join(missing, ", "), advice};
}

Finding loopback() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound =
      fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int number = errno;
  if (fd >= 0) ::close(fd);
  if (bound) return {Health::ok, "loopback", "a port on 127.0.0.1 can be opened", ""};
  return {Health::fail, "loopback",
          std::string("no port on 127.0.0.1 can be opened: ") + std::strerror(number),
          "workers and coordinator talk over it; check the container's network"};
}

Finding open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {Health::ok, "open files", "no limit", ""};
  const bool few = limit.rlim_cur < kFewFiles;
  return {few ? Health::warn : Health::ok, "open files",
          fmt::format("at most {}", static_cast<uint64_t>(limit.rlim_cur)),
          few ? "raise it with `ulimit -n 4096` when many workers connect" : ""};
}

Finding machine() {
  const int64_t memory = available_memory_bytes();
  const bool little = memory > 0 && memory < kLittleMemory;
  return {little ? Health::warn : Health::ok, "machine",
          fmt::format("{} processors, {} of memory available", usable_processors(),
                      human_bytes(static_cast<double>(memory))),
          little ? "run fewer workers (--workers 1): each holds the model in fp32" : ""};
}

}  // namespace

std::string_view to_string(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warn:
      return "warn";
    case Health::fail:
      return "fail";
  }
  return "fail";
}

std::vector<Finding> examine(const DoctorInput& input) {
  return {versions(),       worker(input), database_folder(input), database(input),
          data_sets(input), loopback(),    open_files(),           machine()};
}

}  // namespace kvsweep::cli
