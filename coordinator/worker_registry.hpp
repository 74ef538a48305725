// WorkerRegistry: who is connected. Pure bookkeeping over an injected clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/unit_board.hpp"
#include "core/clock.hpp"
#include "core/wire/messages.hpp"
#include "store/store.hpp"

namespace kvsweep::coordinator {

struct Worker {
  std::string peer;  // routing id of its present connection
  wire::Hello hello;
  bool idle = false;  // asked for work and has none
  int64_t seen_ms = 0;
  store::WorkerRow row;  // as recorded
};

// Not thread-safe.
class WorkerRegistry {
 public:
  explicit WorkerRegistry(const Clock& clock) : clock_(clock) {}

  // Rows of earlier runs, so that first_seen and the counters go on.
  void preload(const std::vector<store::WorkerRow>& rows);

  // A new connection of `hello.worker_id` takes the place of an older one.
  Worker& join(const std::string& peer, const wire::Hello& hello);
  Worker* by_peer(const std::string& peer);     // nullptr when unknown
  Worker* by_id(const std::string& worker_id);  // nullptr when not connected
  void touch(Worker& worker);                   // it has just been heard
  void leave(const std::string& worker_id);
  // Those not heard for `ms`.
  std::vector<std::string> silent(int64_t ms) const;

  WorkerIds ids() const;
  std::map<std::string, Worker>& all() { return workers_; }
  const std::map<std::string, Worker>& all() const { return workers_; }

 private:
  const Clock& clock_;
  std::map<std::string, Worker> workers_;       // by worker id
  std::map<std::string, std::string> by_peer_;  // routing id -> worker id
  std::map<std::string, store::WorkerRow> rows_;
};

}  // namespace kvsweep::coordinator
