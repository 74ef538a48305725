// Options that several verbs share, each with what it takes to act on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/verb.hpp"
#include "coordinator/coordinator.hpp"
#include "store/store.hpp"

namespace kvsweep::cli {

struct DatabaseOptions {
  std::string path = "kvsweep.db";
  bool allow_network_fs = false;

  void declare(Options& options);
  Result<store::Store> open(store::OpenMode mode) const;
};

struct StudyOptions {
  std::string name;  // "" = the newest study

  void declare(Options& options);
  // Error says which studies there are.
  Result<store::StudyRow> pick(const store::Store& store) const;
};

struct LogOptions {
  std::string level = "warn";
  std::string file;

  void declare(Options& options);
  Status apply() const;
};

// How a coordinator runs, with or without workers of its own.
struct RunOptions {
  std::string data_dir;          // filled from KVSWEEP_DATA_DIR by `declare`
  int workers = -1;              // -1 = as many as fit the processors and the memory
  int threads = 0;               // per worker; 0 = processors / workers
  int64_t cache_budget_mib = 0;  // per worker; 0 = the worker's default
  std::string worker_program;
  std::string bind = "tcp://127.0.0.1:*";
  bool insecure = false;
  int maps_per_unit = 0;  // 0 = what the scheme gains from

  void declare_local(Options& options);
  void declare_bind(Options& options);
  void declare_units(Options& options);
  // `models`: folders that workers will load, for the memory they need. `db`: its logs lie beside.
  Result<coordinator::CoordinatorOptions> make(const std::vector<std::string>& models,
                                               const std::string& db) const;
  coordinator::CoordinatorOptions make_without_workers() const;
};

}  // namespace kvsweep::cli
