#include "coordinator/lease_table.hpp"

#include <charconv>
#include <stdexcept>

namespace kvsweep::coordinator {

std::string lease_id_of(const std::string& unit_id, int attempt) {
  return unit_id + "#" + std::to_string(attempt);
}

bool parse_lease_id(const std::string& lease_id, std::string* unit_id, int* attempt) {
  const size_t mark = lease_id.rfind('#');
  if (mark == std::string::npos || mark == 0) return false;
  const char* first = lease_id.data() + mark + 1;
  const char* last = lease_id.data() + lease_id.size();
  int value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc() || end != last || value < 1) return false;
  *unit_id = lease_id.substr(0, mark);
  *attempt = value;
  return true;
}

const LeaseEntry& LeaseTable::grant(const std::string& unit_id, const std::string& worker_id,
                                    int attempt) {
  if (by_unit_.contains(unit_id) || by_worker_.contains(worker_id)) {
    throw std::logic_error("unit " + unit_id + " or worker " + worker_id +
                           " already has a live lease");
  }
  const int64_t now = clock_.steady_ms();
  LeaseEntry lease{.lease_id = lease_id_of(unit_id, attempt),
                   .unit_id = unit_id,
                   .worker_id = worker_id,
                   .attempt = attempt,
                   .expires_ms = now + times_.lease_ms,
                   .moved_ms = now};
  by_unit_[unit_id] = lease.lease_id;
  by_worker_[worker_id] = lease.lease_id;
  return live_[lease.lease_id] = std::move(lease);
}

bool LeaseTable::renew(const std::string& lease_id, const std::string& worker_id,
                       const LeaseCounters& counters) {
  const auto it = live_.find(lease_id);
  if (it == live_.end() || it->second.worker_id != worker_id) return false;
  LeaseEntry& lease = it->second;
  const int64_t now = clock_.steady_ms();
  lease.expires_ms = now + times_.lease_ms;
  if (lease.done != counters.done || lease.tokens != counters.tokens) lease.moved_ms = now;
  lease.done = counters.done;
  lease.total = counters.total;
  lease.tokens = counters.tokens;
  return true;
}

bool LeaseTable::close(const std::string& lease_id) {
  const auto it = live_.find(lease_id);
  if (it == live_.end()) return false;
  forget(it->second);
  live_.erase(it);
  return true;
}

std::vector<ExpiredLease> LeaseTable::expire() {
  const int64_t now = clock_.steady_ms();
  std::vector<ExpiredLease> expired;
  for (auto it = live_.begin(); it != live_.end();) {
    const bool silent = now >= it->second.expires_ms;
    const bool stalled = now - it->second.moved_ms >= times_.stall_ms;
    if (!silent && !stalled) {
      ++it;
      continue;
    }
    forget(it->second);
    expired.push_back({it->second, silent ? ErrorCode::worker_lost : ErrorCode::timeout});
    it = live_.erase(it);
  }
  return expired;
}

const LeaseEntry* LeaseTable::find(const std::string& lease_id) const {
  const auto it = live_.find(lease_id);
  return it == live_.end() ? nullptr : &it->second;
}

const LeaseEntry* LeaseTable::of_unit(const std::string& unit_id) const {
  const auto it = by_unit_.find(unit_id);
  return it == by_unit_.end() ? nullptr : find(it->second);
}

const LeaseEntry* LeaseTable::of_worker(const std::string& worker_id) const {
  const auto it = by_worker_.find(worker_id);
  return it == by_worker_.end() ? nullptr : find(it->second);
}

void LeaseTable::forget(const LeaseEntry& lease) {
  by_unit_.erase(lease.unit_id);
  by_worker_.erase(lease.worker_id);
}

}  // namespace kvsweep::coordinator
