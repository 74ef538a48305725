// The command line of kvsweep-worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::service {

struct WorkerOptions {
  enum class Action {
    serve,
    check_data,
    corpus,
    examples,
    score,
    inspect,
    calibrate,
    version,
    probe,
    help
  };
  Action action = Action::serve;
  std::string endpoint;            // --connect
  int threads = 0;                 // --threads; 0 = every core of this process
  std::string data_dir;            // --data-dir, else the variable KVSWEEP_DATA_DIR
  int64_t cache_budget_bytes = 0;  // --cache-budget; 0 = the engine's default
  std::string worker_id;           // --worker-id, else HOST-PID
  int parent = 0;                  // --exit-with-parent PID; 0 = no
  int64_t idle_timeout_s = 0;      // --idle-timeout
  bool once = false;               // --once
  std::string log_level = "info";  // --log-level
  std::string model;               // --inspect, --calibrate
  std::string out;                 // --out, of --calibrate; "" = standard output
  std::string base = "fp16";       // --baseline-kv, of --calibrate
  // Of --corpus KIND, --examples TASK and --score DIR, which write texts and end, and of
  // --calibrate with --task.
  std::string text_kind;
  int64_t text_count = 10;                // --count, lines
  std::optional<int64_t> text_seed;       // --seed
  std::optional<int64_t> text_length;     // --length, tokens
  std::optional<int64_t> text_shots;      // --shots, of --examples
  std::optional<std::string> text_split;  // --split, of --examples
};

// bad_input names the option, what it got, and the nearest known one.
Result<WorkerOptions> parse_worker_options(const std::vector<std::string>& arguments);

std::string worker_usage();

}  // namespace kvsweep::service
