#include "coordinator/worker_registry.hpp"

namespace kvsweep::coordinator {

void WorkerRegistry::preload(const std::vector<store::WorkerRow>& rows) {
  for (const store::WorkerRow& row : rows) rows_[row.worker_id] = row;
}

Worker& WorkerRegistry::join(const std::string& peer, const wire::Hello& hello) {
  leave(hello.worker_id);
  if (const auto it = by_peer_.find(peer); it != by_peer_.end()) leave(std::string(it->second));
  store::WorkerRow& row = rows_[hello.worker_id];
  row.worker_id = hello.worker_id;
  row.host = hello.host;
  row.device = hello.device;
  row.device_name = hello.device_name;
  row.numerics_class = hello.numerics_class;
  row.version = hello.version;
  if (row.first_seen_utc_ms == 0) row.first_seen_utc_ms = clock_.utc_ms();
  Worker& worker = workers_[hello.worker_id];
  worker = {.peer = peer, .hello = hello, .row = row};
  by_peer_[peer] = hello.worker_id;
  touch(worker);
  return worker;
}

Worker* WorkerRegistry::by_peer(const std::string& peer) {
  const auto it = by_peer_.find(peer);
  return it == by_peer_.end() ? nullptr : by_id(it->second);
}

Worker* WorkerRegistry::by_id(const std::string& worker_id) {
  const auto it = workers_.find(worker_id);
  return it == workers_.end() ? nullptr : &it->second;
}

void WorkerRegistry::touch(Worker& worker) {
  worker.seen_ms = clock_.steady_ms();
  worker.row.last_seen_utc_ms = clock_.utc_ms();
}

void WorkerRegistry::leave(const std::string& worker_id) {
  const auto it = workers_.find(worker_id);
  if (it == workers_.end()) return;
  rows_[worker_id] = it->second.row;
  by_peer_.erase(it->second.peer);
  workers_.erase(it);
}

std::vector<std::string> WorkerRegistry::silent(int64_t ms) const {
  std::vector<std::string> ids;
  for (const auto& [id, worker] : workers_) {
    if (clock_.steady_ms() - worker.seen_ms >= ms) ids.push_back(id);
  }
  return ids;
}

WorkerIds WorkerRegistry::ids() const {
  WorkerIds ids;
  for (const auto& [id, worker] : workers_) ids.insert(id);
  return ids;
}

}  // namespace kvsweep::coordinator
