// A coordinator as a process of its own, so that a test can kill it:
//   run_coordinator DATABASE SPEC.yaml [key=value ...]
// keys: bind, endpoint_file (written when bound), heartbeat_ms, lease_ms, stall_ms, drain_ms,
// examples_per_unit, maps_per_unit, max_attempts, workers, worker_program, log_dir.
// Prints one line per study: NAME STATUS REASON. Exit status 0 when all have finished, 130 when
// interrupted, 1 otherwise.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <string>

#include "coordinator/coordinator.hpp"
#include "core/file.hpp"
#include "core/log.hpp"

namespace {

std::atomic<int> stop{0};

void on_signal(int) {
  stop.fetch_add(1);
}

int fail(const std::string& message) {
  std::fprintf(stderr, "run_coordinator: %s\n", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return fail("usage: run_coordinator DATABASE SPEC [key=value ...]");
  std::map<std::string, std::string> values;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return fail("not key=value: " + word);
    values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  kvsweep::log::init(kvsweep::log::Level::info);

  auto sweep = kvsweep::read_spec(argv[2]);
  if (!sweep.ok()) return fail(sweep.error().message);
  auto store = kvsweep::store::Store::open(
      argv[1], {.mode = kvsweep::store::OpenMode::read_write, .allow_network_fs = true});
  if (!store.ok()) return fail(store.error().message);

  kvsweep::coordinator::CoordinatorOptions options;
  const auto number = [&](const char* key, auto& value) {
    if (values.contains(key)) value = std::stoll(values[key]);
  };
  number("heartbeat_ms", options.heartbeat_ms);
  number("lease_ms", options.lease_ms);
  number("stall_ms", options.stall_ms);
  number("drain_ms", options.drain_ms);
  number("examples_per_unit", options.examples_per_unit);
  number("maps_per_unit", options.maps_per_unit);
  number("max_attempts", options.max_attempts);
  number("workers", options.local.count);
  if (values.contains("bind")) options.bind = values["bind"];
  options.local.program = values["worker_program"];
  options.local.log_dir = values["log_dir"];

  const kvsweep::SystemClock clock;
  const auto on_bound = [&](const std::string& endpoint) {
    if (!values.contains("endpoint_file")) return;
    const auto written = kvsweep::write_file_atomic(values["endpoint_file"], endpoint);
    if (!written.ok()) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  };
  const auto report =
      kvsweep::coordinator::run_sweep(*sweep, *store, options, clock, stop, {}, on_bound);
  if (!report.ok()) return fail(report.error().message);
  bool finished = true;
  for (const auto& study : report->studies) {
    const std::string status(kvsweep::store::to_string(study.status));
    std::printf("%s %s %s\n", study.name.c_str(), status.c_str(), study.status_reason.c_str());
    finished = finished && study.status == kvsweep::store::StudyStatus::finished;
  }
  if (report->interrupted) return 130;
  return finished ? 0 : 1;
}
