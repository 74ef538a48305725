// `kvsweep worker`: becomes kvsweep-worker, which holds the model and links torch.
#include <fmt/format.h>

#include "cli/machine.hpp"
#include "cli/verb.hpp"

namespace kvsweep::cli {
namespace {

class Worker final : public Verb {
 public:
  void declare(Options& options) override {
    data_dir_ = environment("KVSWEEP_DATA_DIR");
    options.note(
        "Connects to a coordinator and runs what it hands out until it is told to leave. "
        "Ctrl-C once finishes the running unit, twice stops at once.");
    options.text("--connect", "ADDRESS", connect_, "the coordinator, such as tcp://10.0.0.5:5555");
    options.text("--worker-id", "NAME", worker_id_, "name of this worker (default: made up)");
    options.integer("--threads", "N", threads_, 1, 1024, "threads (default: all processors)");
    options.integer("--cache-budget", "MIB", cache_budget_mib_, 1, int64_t{1} << 30,
                    "memory for KV caches");
    options.integer("--idle-timeout", "SECONDS", idle_timeout_s_, 1, 1 << 30,
                    "leave after so long without a coordinator (default: never)");
    options.text("--log-level", "LEVEL", log_level_, "debug, info, warn or error (default info)");
    options.text("--data-dir", "DIR", data_dir_, "folder of data sets (default $KVSWEEP_DATA_DIR)");
    options.text("--worker-program", "FILE", program_,
                 "kvsweep-worker to start (default: the one beside kvsweep)");
    options.example("worker --connect tcp://127.0.0.1:5555");
  }

  Result<int> run(Context&) override {
    if (connect_.empty()) {
      return bad_input("--connect is missing; give the address that `kvsweep coordinator` printed");
    }
    KVSWEEP_ASSIGN(const std::string program, find_worker_program(program_));
    return become(program, arguments());
  }

 private:
  std::vector<std::string> arguments() const {
    const int threads = threads_ > 0 ? threads_ : usable_processors();
    std::vector<std::string> words = {"--connect", connect_, "--threads", std::to_string(threads)};
    if (!worker_id_.empty()) words.insert(words.end(), {"--worker-id", worker_id_});
    if (!data_dir_.empty()) words.insert(words.end(), {"--data-dir", data_dir_});
    if (cache_budget_mib_ > 0) {
      words.insert(words.end(), {"--cache-budget", std::to_string(cache_budget_mib_ << 20)});
    }
    if (idle_timeout_s_ > 0) {
      words.insert(words.end(), {"--idle-timeout", std::to_string(idle_timeout_s_)});
    }
    if (!log_level_.empty()) words.insert(words.end(), {"--log-level", log_level_});
    return words;
  }

  std::string connect_;
  std::string worker_id_;
  std::string data_dir_;
  std::string program_;
  int threads_ = 0;
  std::string log_level_;
  int64_t idle_timeout_s_ = 0;
  int64_t cache_budget_mib_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_worker_verb() {
  return std::make_unique<Worker>();
}

}  // namespace kvsweep::cli
