// LocalWorkers: worker processes on this machine, started, restarted and ended by the coordinator.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "core/clock.hpp"
#include "core/result.hpp"

namespace kvsweep::coordinator {

// A worker that ends is started again after a pause that doubles with every quick death (under
// 10 s of life): 0.5 s, 1 s, 2 s ... up to 30 s; after five quick deaths in a row it is given up.
//
// Each worker leads a process group of its own, so that Ctrl-C on the terminal reaches only the
// coordinator, which then drains; and it is told to die with us (--exit-with-parent), so that a
// coordinator that is killed leaves no orphans. Standard output and error go to
// LOG_DIR/worker-N.log. Not thread-safe; call from the thread that lives as long as the workers
// should (the kernel ties them to it).
class LocalWorkers {
 public:
  LocalWorkers(const LocalWorkerOptions& options, const Clock& clock);
  ~LocalWorkers();  // kills what is left
  LocalWorkers(const LocalWorkers&) = delete;
  LocalWorkers& operator=(const LocalWorkers&) = delete;

  // Error (io, not_found) names the program or the folder.
  Status start(const std::string& endpoint);

  // Reaps and restarts (not while `draining`). Error when every worker was given up and
  // `workers_connected` is 0: what the last one wrote is in the message.
  Status poll(bool draining, size_t workers_connected);

  // Kills the process of this worker id, if it is ours; `poll` starts it again.
  void kill(const std::string& worker_id);

  // Waits `patience_ms` for workers that were asked to leave, then SIGTERM, then SIGKILL.
  void stop(int64_t patience_ms);

 private:
  struct Slot {
    std::string worker_id;
    std::string log;
    pid_t pid = -1;  // -1 = not running
    int64_t started_ms = 0;
    int64_t restart_ms = 0;
    int quick_deaths = 0;
    bool given_up = false;
    std::string last_end;  // "exit status 1", "signal 9"
  };

  Status spawn(Slot& slot);
  std::vector<std::string> command(const Slot& slot) const;
  void reap(Slot& slot, int status);
  bool wait_all(int64_t ms);
  void signal_all(int signal);
  std::string tail(const Slot& slot) const;

  LocalWorkerOptions options_;
  const Clock& clock_;
  std::string endpoint_;
  std::vector<Slot> slots_;
};

}  // namespace kvsweep::coordinator
