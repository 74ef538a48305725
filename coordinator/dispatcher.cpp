#include "coordinator/dispatcher.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/fault.hpp"
#include "core/ids.hpp"
#include "core/log.hpp"

namespace kvsweep::coordinator {

namespace {

constexpr int64_t kTurnMs = 50;       // the longest wait: stop flags and children are looked at
constexpr size_t kBatch = 1024;       // messages per transaction
constexpr int kBeginsPerTurn = 32;    // reused trials need no worker; let messages in between
constexpr size_t kHeldResults = 256;  // beyond that they stay with the worker, which resends
constexpr int64_t kShowMs = 200;

bool writes(const Incoming& incoming) {
  return !std::holds_alternative<wire::Progress>(incoming.message);
}

}  // namespace

Dispatcher::Dispatcher(ZmqEndpoint& endpoint, store::Store& store, const Clock& clock,
                       const CoordinatorOptions& options)
    : endpoint_(endpoint),
      store_(store),
      clock_(clock),
      options_(options),
      session_(uuid_v7(clock.utc_ms())),
      workers_(clock),
      leases_(clock, {.lease_ms = options.lease_ms, .stall_ms = options.stall_ms}) {}

Result<RunEnd> Dispatcher::run(Driver& driver, const Watch& watch) {
  driver_ = &driver;
  held_.clear();
  judged_described_ = 0;
  draining_ = false;
  again_ = true;
  Result<RunEnd> end = loop(watch);
  driver_ = nullptr;
  outbox_.clear();
  return end;
}

Result<RunEnd> Dispatcher::loop(const Watch& watch) {
  KVSWEEP_TRY(store_.transaction([this] { return begin_run(); }));
  flush();
  int64_t drain_until = 0;
  while (!driver_->finished()) {
    KVSWEEP_TRY(turn(again_ ? 0 : kTurnMs));
    KVSWEEP_TRY(watch.tick({std::exchange(stuck_, {}), workers_.all().size(), draining_}));
    show(watch.progress);
    const int stop = watch.stop.load();
    if (stop >= 1 && !draining_) {
      start_drain();
      drain_until = clock_.steady_ms() + options_.drain_ms;
    }
    const bool drained = leases_.live().empty() || clock_.steady_ms() >= drain_until;
    if (stop >= 2 || (draining_ && drained && !again_)) {
      if (driver_->finished()) break;
      KVSWEEP_TRY(store_.transaction([this] { return driver_->interrupted(); }));
      return RunEnd::interrupted;
    }
  }
  shown_ms_ = -1;
  show(watch.progress);
  return RunEnd::finished;
}

// Workers of the run before stay, if this run can use them.
Status Dispatcher::begin_run() {
  KVSWEEP_ASSIGN(const auto rows, store_.workers());
  workers_.preload(rows);
  for (const std::string& id : workers_.ids()) {
    const Worker worker = *workers_.by_id(id);
    if (const auto reason = driver_->refuses(worker.hello)) {
      post(worker.peer, wire::Refuse{*reason});
      workers_.leave(id);
      continue;
    }
    KVSWEEP_TRY(driver_->admitted(worker.hello));
  }
  return assign();
}

Status Dispatcher::turn(int64_t wait_ms) {
  endpoint_.wait(wait_ms);
  const std::vector<Incoming> batch = endpoint_.receive(kBatch);
  const std::vector<ExpiredLease> expired = leases_.expire();
  const auto silent = workers_.silent(std::max(options_.lease_ms, 10 * options_.heartbeat_ms));
  const bool must_write = again_ || !expired.empty() || !silent.empty() ||
                          std::any_of(batch.begin(), batch.end(), writes);
  again_ = batch.size() == kBatch;
  recorded_ = false;
  if (!must_write) {
    for (const Incoming& incoming : batch) KVSWEEP_TRY(handle(incoming));
    flush();
    return {};
  }
  KVSWEEP_TRY(store_.transaction([&]() -> Status {
    KVSWEEP_TRY(process(batch, expired, silent));
    if (recorded_) fault_point("exit_before_commit");
    return {};
  }));
  if (recorded_) fault_point("exit_after_commit");
  flush();
  return {};
}

Status Dispatcher::process(const std::vector<Incoming>& batch,
                           const std::vector<ExpiredLease>& expired,
                           const std::vector<std::string>& silent) {
  // Messages first: a result that arrived together with the expiry of its lease counts.
  for (const Incoming& incoming : batch) KVSWEEP_TRY(handle(incoming));
  for (const ExpiredLease& lease : expired) KVSWEEP_TRY(on_expired(lease));
  for (const std::string& id : silent) {
    const Worker* worker = workers_.by_id(id);
    if (worker == nullptr) continue;
    KVSWEEP_TRY(event("worker_left", {{"worker", id}, {"reason", "silent"}}));
    workers_.leave(id);
  }
  return assign();
}

// Lends what waits, and has the driver begin more, until every idle worker is busy or there is
// nothing left. An algorithm is asked only when a worker is idle and nothing waits: with one
// worker, what is proposed knows the outcome of everything that was proposed in earlier calls.
Status Dispatcher::assign() {
  int begun = 0;
  while (true) {
    KVSWEEP_TRY(driver_->step());
    if (driver_->finished()) return {};
    if (driver_->workload().described() != judged_described_) {
      KVSWEEP_TRY(judge_held());
      continue;
    }
    if (draining_) return {};
    if (lend_waiting()) continue;
    const bool idle = std::any_of(workers_.all().begin(), workers_.all().end(),
                                  [](const auto& entry) { return entry.second.idle; });
    if (!idle || driver_->workload().waiting() > 0) return {};
    if (begun++ == kBeginsPerTurn) {
      again_ = true;
      return {};
    }
    KVSWEEP_ASSIGN(const bool more, driver_->more());
    if (!more) return {};
  }
}

bool Dispatcher::lend_waiting() {
  bool lent = false;
  const WorkerIds live = workers_.ids();
  for (auto& [id, worker] : workers_.all()) {
    if (!worker.idle) continue;
    std::optional<Grant> grant = driver_->workload().take(id, live);
    if (!grant) continue;
    // A unit that an earlier run gave up may still be running somewhere; its result is welcome.
    if (const LeaseEntry* old = leases_.of_unit(grant->unit_id)) {
      leases_.close(std::string(old->lease_id));
    }
    const LeaseEntry& lease = leases_.grant(grant->unit_id, id, grant->attempt);
    worker.idle = false;
    lent = true;
    post(worker.peer, wire::Lease{lease.lease_id, lease.attempt, std::move(grant->unit)});
  }
  return lent;
}

Status Dispatcher::judge_held() {
  judged_described_ = driver_->workload().described();
  for (const auto& [lease_id, held] : std::exchange(held_, {})) {
    KVSWEEP_TRY(judge(held.worker_id, held.result, false));
  }
  return {};
}

Status Dispatcher::judge(const std::string& worker_id, const wire::UnitResult& result,
                         bool leased) {
  KVSWEEP_ASSIGN(const Verdict verdict,
                 driver_->workload().accept(result, {worker_id, leased, workers_.ids()}));
  if (verdict.judgement == Judgement::held) {
    if (held_.size() < kHeldResults) held_[result.lease_id] = {worker_id, result};
    return {};
  }
  acknowledge(worker_id, result.lease_id);
  if (verdict.judgement == Judgement::refused) {
    return event("result_refused",
                 {{"worker", worker_id}, {"lease", result.lease_id}, {"reason", verdict.why}});
  }
  recorded_ = recorded_ || !result.maps.empty();
  return {};
}

void Dispatcher::post(const std::string& peer, wire::Message message) {
  outbox_.push_back({peer, std::move(message)});
}

void Dispatcher::acknowledge(const std::string& worker_id, const std::string& lease_id) {
  if (const Worker* worker = workers_.by_id(worker_id)) post(worker->peer, wire::Ack{lease_id});
}

// A lease that does not reach its worker goes back at once and is charged to nobody.
void Dispatcher::flush() {
  for (const Outgoing& out : std::exchange(outbox_, {})) {
    if (endpoint_.send(out.peer, out.message) == SendOutcome::sent) continue;
    const auto* lease = std::get_if<wire::Lease>(&out.message);
    if (lease == nullptr) continue;
    leases_.close(lease->lease_id);
    if (driver_ != nullptr) driver_->workload().give_back(lease->unit.unit_id);
    if (const Worker* worker = workers_.by_peer(out.peer)) {
      workers_.leave(std::string(worker->hello.worker_id));
    }
    again_ = true;
  }
}

void Dispatcher::start_drain() {
  draining_ = true;
  log::info("coordinator",
            fmt::format("draining: waiting for {} running units", leases_.live().size()));
  tell_to_leave();
}

void Dispatcher::tell_to_leave() {
  for (const auto& [id, worker] : workers_.all()) endpoint_.send(worker.peer, wire::Drain{});
}

void Dispatcher::dismiss(int64_t patience_ms) {
  tell_to_leave();
  const int64_t until = clock_.steady_ms() + patience_ms;
  while (!workers_.all().empty() && clock_.steady_ms() < until) {
    endpoint_.wait(kTurnMs);
    for (const Incoming& incoming : endpoint_.receive(kBatch)) {
      const Worker* worker = workers_.by_peer(incoming.peer);
      if (std::holds_alternative<wire::Bye>(incoming.message) && worker != nullptr) {
        workers_.leave(std::string(worker->hello.worker_id));
      } else if (std::holds_alternative<wire::Hello>(incoming.message)) {
        endpoint_.send(incoming.peer, wire::Drain{});
      }
    }
  }
}

void Dispatcher::show(const ProgressSink& sink) {
  if (!sink) return;
  const int64_t now = clock_.steady_ms();
  const int64_t news = driver_->news();
  if (shown_ms_ >= 0 && now - shown_ms_ < kShowMs && news == shown_news_) return;
  shown_ms_ = now;
  shown_news_ = news;
  StudyProgress progress = driver_->progress();
  progress.workers_live = static_cast<int64_t>(workers_.all().size());
  progress.workers_busy = static_cast<int64_t>(leases_.live().size());
  for (const auto& [id, lease] : leases_.live()) progress.examples_done += lease.done;
  sink(progress);
}

Status Dispatcher::event(const std::string& kind, Json detail) {
  log::info("coordinator", kind + " " + detail.dump());
  return store_.add_event(driver_->workload().model().study_id, kind, detail.dump(),
                          clock_.utc_ms());
}

}  // namespace kvsweep::coordinator
