// Dispatcher: what each message of a worker does.
#include <fmt/format.h>

#include "coordinator/dispatcher.hpp"
#include "core/log.hpp"

namespace kvsweep::coordinator {

Status Dispatcher::handle(const Incoming& incoming) {
  if (const auto* hello = std::get_if<wire::Hello>(&incoming.message)) {
    return on_hello(incoming.peer, *hello);
  }
  Worker* worker = workers_.by_peer(incoming.peer);
  if (worker == nullptr) {
    // It knows another coordinator process, or another connection of ours: a Welcome that it did
    // not ask for makes it say Hello again, and then send again what is not acknowledged.
    post(incoming.peer, wire::Welcome{session_, options_.heartbeat_ms, options_.lease_ms});
    return {};
  }
  workers_.touch(*worker);
  return std::visit(
      [&](const auto& message) -> Status {
        using T = std::decay_t<decltype(message)>;
        if constexpr (std::is_same_v<T, wire::Ready>) {
          return on_ready(*worker);
        } else if constexpr (std::is_same_v<T, wire::Progress>) {
          return on_progress(*worker, message);
        } else if constexpr (std::is_same_v<T, wire::UnitResult>) {
          return on_result(*worker, message);
        } else if constexpr (std::is_same_v<T, wire::Release>) {
          return on_release(*worker, message);
        } else if constexpr (std::is_same_v<T, wire::Bye>) {
          return on_bye(*worker, message);
        } else {
          log::warn("coordinator",
                    fmt::format("worker {} sent a '{}', which only a coordinator sends; ignored",
                                worker->hello.worker_id, wire::type_name(incoming.message)));
          return {};
        }
      },
      incoming.message);
}

Status Dispatcher::on_hello(const std::string& peer, const wire::Hello& hello) {
  std::optional<std::string> reason = driver_->refuses(hello);
  Worker* existing = workers_.by_id(hello.worker_id);
  if (!reason && existing != nullptr && is_duplicate(*existing, peer, hello)) {
    reason = fmt::format(
        "a worker named '{}' (process {} on {}) is connected already; give every worker another "
        "--worker-id",
        hello.worker_id, existing->hello.pid, existing->hello.host);
  }
  if (reason) {
    post(peer, wire::Refuse{*reason});
    return event("worker_refused", {{"worker", hello.worker_id}, {"reason", *reason}});
  }
  const bool same_process =
      existing != nullptr && existing->hello.pid == hello.pid && existing->hello.host == hello.host;
  if (existing != nullptr && !same_process) {
    KVSWEEP_TRY(lose(*existing, "its process was replaced by another"));
  }
  return admit(peer, hello);
}

// Another process under the same name, while the first is heard and reachable.
bool Dispatcher::is_duplicate(const Worker& existing, const std::string& peer,
                              const wire::Hello& hello) {
  if (existing.peer == peer) return false;
  if (existing.hello.pid == hello.pid && existing.hello.host == hello.host) return false;
  if (clock_.steady_ms() - existing.seen_ms > 3 * options_.heartbeat_ms) return false;
  // The socket knows at once when a process on the other end died: ROUTER_MANDATORY says so. The
  // probe is harmless: a live worker answers it with another Hello.
  const wire::Welcome probe{session_, options_.heartbeat_ms, options_.lease_ms};
  return endpoint_.send(existing.peer, probe) == SendOutcome::sent;
}

Status Dispatcher::admit(const std::string& peer, const wire::Hello& hello) {
  const bool known = workers_.by_id(hello.worker_id) != nullptr;
  Worker& worker = workers_.join(peer, hello);
  KVSWEEP_TRY(store_.put_worker(worker.row));
  KVSWEEP_TRY(driver_->admitted(hello));
  if (!known) {
    KVSWEEP_TRY(event("worker_joined", {{"worker", hello.worker_id},
                                        {"host", hello.host},
                                        {"device", hello.device},
                                        {"class", hello.numerics_class}}));
  }
  post(peer, wire::Welcome{session_, options_.heartbeat_ms, options_.lease_ms});
  if (draining_) post(peer, wire::Drain{});
  return {};
}

// The worker's process is gone: its unit is lent again at once, as a new attempt.
Status Dispatcher::lose(const Worker& worker, const std::string& why) {
  const std::string id = worker.hello.worker_id;
  const LeaseEntry* lease = leases_.of_worker(id);
  if (lease != nullptr) {
    const LeaseEntry lost = *lease;
    leases_.close(lost.lease_id);
    KVSWEEP_TRY(on_expired({lost, ErrorCode::worker_lost}));
  }
  KVSWEEP_TRY(event("worker_left", {{"worker", id}, {"reason", why}}));
  workers_.leave(id);
  return {};
}

Status Dispatcher::on_ready(Worker& worker) {
  worker.idle = true;
  const LeaseEntry* lease = leases_.of_worker(worker.hello.worker_id);
  if (lease == nullptr) return {};
  // It has no work although we lent it some: the lease was lost with a connection.
  const LeaseEntry lost = *lease;
  leases_.close(lost.lease_id);
  driver_->workload().give_back(lost.unit_id);
  return {};
}

Status Dispatcher::on_progress(Worker& worker, const wire::Progress& progress) {
  for (const wire::LeaseProgress& entry : progress.leases) {
    const LeaseCounters counters{entry.done, entry.total, entry.tokens};
    if (leases_.renew(entry.lease_id, worker.hello.worker_id, counters)) continue;
    adopt(worker, entry);
  }
  return {};
}

// A worker runs a unit under a lease that expired, or that another coordinator process granted,
// and nobody else has the unit: let it go on.
void Dispatcher::adopt(Worker& worker, const wire::LeaseProgress& entry) {
  std::string unit_id;
  int attempt = 0;
  const std::string& id = worker.hello.worker_id;
  if (!parse_lease_id(entry.lease_id, &unit_id, &attempt)) return;
  if (leases_.of_worker(id) != nullptr || leases_.of_unit(unit_id) != nullptr) return;
  if (!driver_->workload().adopt(unit_id, attempt, id)) return;
  leases_.grant(unit_id, id, attempt);
  worker.idle = false;
}

Status Dispatcher::on_result(Worker& worker, const wire::UnitResult& result) {
  const std::string& id = worker.hello.worker_id;
  const LeaseEntry* lease = leases_.find(result.lease_id);
  const bool live = lease != nullptr && lease->worker_id == id && lease->unit_id == result.unit_id;
  if (live) leases_.close(result.lease_id);
  if (result.failure) return on_failure(worker, result, live);
  if (live) {
    ++worker.row.units_done;
    KVSWEEP_TRY(store_.put_worker(worker.row));
  }
  return judge(id, result, live);
}

Status Dispatcher::on_failure(Worker& worker, const wire::UnitResult& result, bool live) {
  const std::string& id = worker.hello.worker_id;
  acknowledge(id, result.lease_id);
  if (!live) return {};  // charged already, when the lease expired
  ++worker.row.units_failed;
  KVSWEEP_TRY(store_.put_worker(worker.row));
  KVSWEEP_TRY(event("unit_failed", {{"worker", id},
                                    {"unit", result.unit_id},
                                    {"class", std::string(to_string(result.failure->code))},
                                    {"message", result.failure->message}}));
  return driver_->workload().failed(result.unit_id, *result.failure, {id, live, workers_.ids()});
}

Status Dispatcher::on_release(Worker& worker, const wire::Release& release) {
  const LeaseEntry* lease = leases_.find(release.lease_id);
  if (lease == nullptr || lease->worker_id != worker.hello.worker_id) return {};
  const std::string unit_id = lease->unit_id;
  leases_.close(release.lease_id);
  driver_->workload().give_back(unit_id);
  return event("lease_released",
               {{"worker", worker.hello.worker_id}, {"unit", unit_id}, {"reason", release.reason}});
}

Status Dispatcher::on_bye(Worker& worker, const wire::Bye& bye) {
  const std::string id = worker.hello.worker_id;
  if (const LeaseEntry* lease = leases_.of_worker(id)) {
    const LeaseEntry left = *lease;
    leases_.close(left.lease_id);
    driver_->workload().give_back(left.unit_id);
  }
  KVSWEEP_TRY(event("worker_left", {{"worker", id}, {"reason", bye.reason}}));
  workers_.leave(id);
  return {};
}

Status Dispatcher::on_expired(const ExpiredLease& expired) {
  const LeaseEntry& lease = expired.lease;
  const std::string why =
      expired.reason == ErrorCode::timeout
          ? fmt::format("worker {} made no progress for {} s", lease.worker_id,
                        options_.stall_ms / 1000)
          : fmt::format("worker {} was not heard of before its lease ran out", lease.worker_id);
  if (expired.reason == ErrorCode::timeout) stuck_.push_back(lease.worker_id);
  KVSWEEP_TRY(event("lease_expired", {{"worker", lease.worker_id},
                                      {"unit", lease.unit_id},
                                      {"attempt", lease.attempt},
                                      {"class", std::string(to_string(expired.reason))}}));
  return driver_->workload().failed(lease.unit_id, {expired.reason, why},
                                    {lease.worker_id, true, workers_.ids()});
}

}  // namespace kvsweep::coordinator
