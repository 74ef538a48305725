#include "cli/common_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/machine.hpp"
#include "coordinator/joint_maps.hpp"
#include "core/log.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

constexpr int kMostWorkers = 256;
constexpr int kMostThreads = 1024;
constexpr int kMostDefaultWorkers = 8;

// One worker per processor, as long as the weights of all fit into 60 % of the free memory: small
// models gain more from several sequences at once than from threads inside one.
int default_workers(const std::vector<std::string>& models) {
  int count = std::min(usable_processors(), kMostDefaultWorkers);
  int64_t largest = 0;
  for (const std::string& model : models) largest = std::max(largest, weight_bytes(model));
  const int64_t available = available_memory_bytes();
  // Weights are kept in fp32, twice the size of the usual files.
  if (largest > 0 && available > 0) {
    count = std::min<int>(count, static_cast<int>(available * 6 / 10 / (2 * largest)));
  }
  return std::max(count, 1);
}

}  // namespace

void DatabaseOptions::declare(Options& options) {
  options.text("--db", "FILE", path, "database (default kvsweep.db)");
  options.flag("--allow-network-fs", allow_network_fs,
               "accept a database on a network file system, at your own risk");
}

Result<store::Store> DatabaseOptions::open(store::OpenMode mode) const {
  auto opened = store::Store::open(path, {mode, allow_network_fs});
  if (!opened.ok() && opened.error().code == ErrorCode::not_found &&
      mode == store::OpenMode::read_only) {
    return Error{
        ErrorCode::not_found,
        opened.error().message + "; `kvsweep tune SPEC` makes one, and --db names another"};
  }
  return opened;
}

void StudyOptions::declare(Options& options) {
  options.text("--study", "NAME", name, "study, as NAME, SWEEP/NAME or number (default: newest)");
}

Result<store::StudyRow> StudyOptions::pick(const store::Store& store) const {
  if (!name.empty()) return store.study(name);
  KVSWEEP_ASSIGN(const std::vector<store::StudyRow> studies, store.studies());
  if (studies.empty()) {
    return not_found("the database has no study yet; `kvsweep tune SPEC` runs one");
  }
  return *std::max_element(studies.begin(), studies.end(), [](const auto& a, const auto& b) {
    return std::pair(a.created_utc_ms, a.id) < std::pair(b.created_utc_ms, b.id);
  });
}

void LogOptions::declare(Options& options) {
  options.value("--log-level", "LEVEL", "debug, info, warn or error (default warn)",
                [this](const std::string& text) -> Status {
                  if (!log::level_from(text)) {
                    return bad_input("--log-level is \"" + text +
                                     "\"; allowed are debug, info, warn and error");
                  }
                  level = text;
                  return {};
                });
  options.text("--log-file", "FILE", file, "write the log there instead of standard error");
}

Status LogOptions::apply() const {
  log::init(log::level_from(level).value_or(log::Level::warn), file);
  return {};
}

void RunOptions::declare_local(Options& options) {
  data_dir = environment("KVSWEEP_DATA_DIR");
  options.text("--data-dir", "DIR", data_dir, "folder of data sets (default $KVSWEEP_DATA_DIR)");
  options.integer("--workers", "N", workers, 1, kMostWorkers,
                  "local workers (default: as many as processors and memory allow, at most 8)");
  options.integer("--threads", "N", threads, 1, kMostThreads,
                  "threads of each worker (default: processors / workers)");
  options.integer("--cache-budget", "MIB", cache_budget_mib, 1, int64_t{1} << 30,
                  "memory for the KV caches of each worker");
  options.text("--worker-program", "FILE", worker_program,
               "kvsweep-worker to start (default: the one beside kvsweep)");
}

void RunOptions::declare_bind(Options& options) {
  options.text("--bind", "ADDRESS", bind, "where workers connect (default tcp://127.0.0.1:*)");
  options.flag("--insecure", insecure,
               "allow an address that other machines reach, without encryption");
}

void RunOptions::declare_units(Options& options) {
  options.integer("--maps-per-unit", "N", maps_per_unit, 1, coordinator::kMostMapsPerUnit,
                  "maps that a worker measures together, and candidates asked for at once "
                  "(default: 8 and more where prompts are computed exactly, else 1)");
}

coordinator::CoordinatorOptions RunOptions::make_without_workers() const {
  coordinator::CoordinatorOptions made;
  made.bind = bind;
  made.insecure = insecure;
  made.maps_per_unit = maps_per_unit;
  return made;
}

Result<coordinator::CoordinatorOptions> RunOptions::make(const std::vector<std::string>& models,
                                                         const std::string& db) const {
  coordinator::CoordinatorOptions made = make_without_workers();
  KVSWEEP_ASSIGN(made.local.program, find_worker_program(worker_program));
  made.local.count = workers > 0 ? workers : default_workers(models);
  made.local.threads = threads > 0 ? threads : std::max(1, usable_processors() / made.local.count);
  made.local.data_dir = data_dir;
  made.local.log_dir = db + ".logs";
  made.local.cache_budget_bytes = cache_budget_mib << 20;
  return made;
}

}  // namespace kvsweep::cli
