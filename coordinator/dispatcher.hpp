// Dispatcher: moves messages between workers and a driver, and keeps the lease rules.
//
// One turn: take everything that waits on the socket, work it off inside *one* store transaction
// (group commit), and only after the commit send what came of it: acknowledgements first, then
// leases. A process that dies at any point leaves a database in which a result is either whole and
// will be sent again (and found to be there), or absent and will be sent again. A turn with nothing
// but heartbeats writes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/driver.hpp"
#include "coordinator/lease_table.hpp"
#include "coordinator/worker_registry.hpp"
#include "coordinator/zmq_endpoint.hpp"
#include "core/clock.hpp"
#include "store/store.hpp"

namespace kvsweep::coordinator {

enum class RunEnd { finished, interrupted };

struct TurnNews {
  std::vector<std::string> stuck;  // workers whose unit timed out: a local one can be killed
  size_t workers = 0;              // connected
  bool draining = false;
};

struct Watch {
  const std::atomic<int>& stop;  // 1 = drain, 2 = leave at once
  const ProgressSink& progress;  // may be empty
  // Every turn, outside any transaction; an error ends the run.
  std::function<Status(const TurnNews& news)> tick;
};

// Single-threaded, like the endpoint and the store it works on.
class Dispatcher {
 public:
  Dispatcher(ZmqEndpoint& endpoint, store::Store& store, const Clock& clock,
             const CoordinatorOptions& options);

  // Until the driver has finished, or an error of the store or of `tick`, or a stop. Workers stay
  // connected, so that the next driver finds them.
  Result<RunEnd> run(Driver& driver, const Watch& watch);

  // Tells every worker to finish and leave, and waits at most `patience_ms` until all have said
  // Bye: what is sent just before a socket closes need not arrive. Not during a run.
  void dismiss(int64_t patience_ms);

 private:
  struct Outgoing {
    std::string peer;
    wire::Message message;
  };
  struct Held {
    std::string worker_id;
    wire::UnitResult result;
  };

  Result<RunEnd> loop(const Watch& watch);
  Status begin_run();
  Status turn(int64_t wait_ms);
  Status process(const std::vector<Incoming>& batch, const std::vector<ExpiredLease>& expired,
                 const std::vector<std::string>& silent);
  Status handle(const Incoming& incoming);
  Status on_hello(const std::string& peer, const wire::Hello& hello);
  Status on_ready(Worker& worker);
  Status on_progress(Worker& worker, const wire::Progress& progress);
  Status on_result(Worker& worker, const wire::UnitResult& result);
  Status on_release(Worker& worker, const wire::Release& release);
  Status on_bye(Worker& worker, const wire::Bye& bye);
  Status on_expired(const ExpiredLease& expired);
  Status on_failure(Worker& worker, const wire::UnitResult& result, bool live);
  Status admit(const std::string& peer, const wire::Hello& hello);
  bool is_duplicate(const Worker& existing, const std::string& peer, const wire::Hello& hello);
  Status lose(const Worker& worker, const std::string& why);
  void adopt(Worker& worker, const wire::LeaseProgress& entry);
  Status judge(const std::string& worker_id, const wire::UnitResult& result, bool leased);
  Status judge_held();
  Status assign();
  bool lend_waiting();
  void flush();
  void start_drain();
  void tell_to_leave();
  void show(const ProgressSink& sink);
  Status event(const std::string& kind, Json detail);
  void post(const std::string& peer, wire::Message message);
  void acknowledge(const std::string& worker_id, const std::string& lease_id);

  ZmqEndpoint& endpoint_;
  store::Store& store_;
  const Clock& clock_;
  CoordinatorOptions options_;
  std::string session_;
  WorkerRegistry workers_;
  LeaseTable leases_;
  Driver* driver_ = nullptr;
  std::vector<Outgoing> outbox_;
  std::map<std::string, Held> held_;  // by lease id; neither recorded nor acknowledged yet
  int64_t judged_described_ = 0;      // Workload::described() when `held_` was last looked at
  std::vector<std::string> stuck_;
  bool draining_ = false;
  bool again_ = false;     // more to do without waiting for a message
  bool recorded_ = false;  // this turn stored measurements
  int64_t shown_ms_ = -1;
  int64_t shown_news_ = -1;
};

}  // namespace kvsweep::coordinator
