#include "worker/service/service.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "worker/service/compute_thread.hpp"
#include "worker/service/connection.hpp"
#include "worker/service/stop_signal.hpp"

namespace kvsweep::service {

namespace {

constexpr int64_t kHeartbeatMs = 1000;      // until Welcome says otherwise
constexpr int64_t kHelloPatienceMs = 3000;  // a Hello that nobody answers is said again
constexpr int64_t kFirstLonelyMs = 5000;    // without a coordinator, until that is said
constexpr int64_t kLonelyMs = 60000;        // and until it is said again
constexpr int64_t kLeastResendMs = 500;
constexpr int64_t kMostResendMs = 30000;
constexpr int64_t kAckPatienceMs = 5000;      // for acknowledgements, when leaving
constexpr int64_t kCancelPatienceMs = 15000;  // for the running unit to stop, when told to leave

struct Unacknowledged {
  wire::UnitResult result;
  int64_t sent_ms = 0;
  int64_t pause_ms = 0;  // until it is sent again
};

class Service {
 public:
  Service(const ServiceOptions& options, Connection connection, UnitRunner& runner, int wake_fd)
      : options_(options),
        connection_(std::move(connection)),
        compute_(std::make_unique<ComputeThread>(runner, wake_fd)),
        wake_fd_(wake_fd),
        contact_ms_(clock_.steady_ms()) {}

  int run();

 private:
  void handle(const wire::Message& message);
  void on_welcome(const wire::Welcome& welcome);
  void on_lease(const wire::Lease& lease);
  void on_ack(const wire::Ack& ack);
  void on_result(wire::UnitResult result);
  void say_hello();
  void beat();
  void ask_for_work();
  void resend();
  void release(const std::string& lease_id, const std::string& reason);
  bool send(const wire::Message& message);
  void leave(int status, const std::string& reason);
  void look_at_signals();
  void look_at_contact();
  std::optional<int> gone();
  void drain_wake();
  int64_t wait_ms() const;

  const ServiceOptions& options_;
  SystemClock clock_;
  Connection connection_;
  std::unique_ptr<ComputeThread> compute_;
  const int wake_fd_;

  std::string session_;      // of the coordinator that welcomed us; "" = nobody
  bool hello_open_ = false;  // said, not answered
  bool asked_ = false;       // Ready was sent and nothing came yet
  int64_t hello_ms_ = -kHelloPatienceMs;
  int64_t beat_ms_ = 0;
  int64_t heartbeat_ms_ = kHeartbeatMs;
  int64_t contact_ms_;                       // when we last had a coordinator
  int64_t next_lonely_ms_ = kFirstLonelyMs;  // without one, when to say so
  std::deque<Unacknowledged> unacknowledged_;
  int64_t units_ = 0;

  bool leaving_ = false;
  bool cancelled_ = false;
  int status_ = kExitDone;
  int64_t leaving_ms_ = 0;
  std::string reason_;
};

int Service::run() {
  while (true) {
    connection_.wait(wait_ms(), wake_fd_);
    drain_wake();
    while (std::optional<Result<wire::Message>> message = connection_.receive()) {
      if (message->ok()) {
        handle(message->value());
      } else {
        log::error("worker", message->error().message);
        leave(kExitRefused, message->error().message);
      }
    }
    if (std::optional<wire::UnitResult> result = compute_->take_result()) {
      on_result(std::move(*result));
    }
    look_at_signals();
    look_at_contact();
    beat();
    resend();
    ask_for_work();
    if (const std::optional<int> status = gone()) return *status;
  }
}

int64_t Service::wait_ms() const {
  return std::clamp<int64_t>(heartbeat_ms_ / 2, 5, 500);
}

void Service::drain_wake() {
  uint64_t count = 0;
  if (read(wake_fd_, &count, sizeof(count)) < 0) {
    // Not signalled; the descriptor does not block.
  }
}

void Service::handle(const wire::Message& message) {
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
    on_welcome(*welcome);
  } else if (const auto* lease = std::get_if<wire::Lease>(&message)) {
    on_lease(*lease);
  } else if (const auto* ack = std::get_if<wire::Ack>(&message)) {
    on_ack(*ack);
  } else if (const auto* refuse = std::get_if<wire::Refuse>(&message)) {
    log::error("worker", "refused: " + refuse->reason);
    leave(kExitRefused, refuse->reason);
  } else if (std::holds_alternative<wire::Drain>(message)) {
    if (!leaving_) log::info("worker", "asked to finish and leave");
    leave(kExitDone, "drained");
  } else if (std::holds_alternative<wire::Bye>(message)) {
    session_.clear();
    hello_open_ = false;
  } else {
    log::warn("worker", fmt::format("the coordinator sent a '{}', which only workers send",
                                    wire::type_name(message)));
  }
}

void Service::on_welcome(const wire::Welcome& welcome) {
  if (!hello_open_) {
    say_hello();
    return;
  }
  if (session_ != welcome.session) log::info("worker", "connected to " + options_.endpoint);
  hello_open_ = false;
  asked_ = false;
  session_ = welcome.session;
  heartbeat_ms_ = welcome.heartbeat_ms;
  contact_ms_ = clock_.steady_ms();
  for (Unacknowledged& waiting : unacknowledged_) waiting.sent_ms = 0;
  resend();
  beat_ms_ = 0;  // names what is running before anything else is lent
  beat();
}

void Service::on_lease(const wire::Lease& lease) {
  asked_ = false;
  if (compute_->busy() || leaving_) {
    release(lease.lease_id, leaving_ ? "leaving" : "busy with another unit");
    return;
  }
  log::info("worker", fmt::format("unit {} (attempt {}): {} examples", lease.unit.unit_id,
                                  lease.attempt, lease.unit.examples.size()));
  compute_->start(lease);
}

void Service::on_ack(const wire::Ack& ack) {
  std::erase_if(unacknowledged_, [&](const Unacknowledged& waiting) {
    return waiting.result.lease_id == ack.lease_id;
  });
}

void Service::on_result(wire::UnitResult result) {
  ++units_;
  result.numerics_class = options_.hello.numerics_class;
  if (result.failure && result.failure->code == ErrorCode::preempted) {
    release(result.lease_id, result.failure->message);
  } else {
    if (result.failure) {
      log::warn("worker", fmt::format("unit {} failed ({}): {}", result.unit_id,
                                      to_string(result.failure->code), result.failure->message));
    }
    unacknowledged_.push_back({.result = std::move(result)});
    resend();
  }
  if (options_.once) leave(kExitDone, "one unit was asked for");
}

bool Service::send(const wire::Message& message) {
  if (connection_.send(message)) return true;
  session_.clear();  // nobody is there: say Hello when somebody is
  hello_open_ = false;
  return false;
}

void Service::say_hello() {
  hello_ms_ = clock_.steady_ms();
  if (send(options_.hello)) hello_open_ = true;
}

void Service::release(const std::string& lease_id, const std::string& reason) {
  send(wire::Release{lease_id, reason});
}

void Service::beat() {
  const int64_t now = clock_.steady_ms();
  if (session_.empty()) {
    // An answered Hello clears `hello_open_`; one that nobody answers is said again.
    if (!hello_open_ || now - hello_ms_ >= kHelloPatienceMs) say_hello();
    return;
  }
  if (now - beat_ms_ < heartbeat_ms_) return;
  beat_ms_ = now;
  wire::Progress progress;
  if (compute_->busy()) progress.leases.push_back(compute_->progress());
  send(progress);
}

void Service::ask_for_work() {
  if (session_.empty() || asked_ || leaving_ || compute_->busy()) return;
  asked_ = send(wire::Ready{});
}

void Service::resend() {
  if (session_.empty()) return;
  const int64_t now = clock_.steady_ms();
  for (Unacknowledged& waiting : unacknowledged_) {
    if (waiting.sent_ms != 0 && now - waiting.sent_ms < waiting.pause_ms) continue;
    if (!send(waiting.result)) return;
    const int64_t first = std::max(kLeastResendMs, 2 * heartbeat_ms_);
    waiting.pause_ms = std::clamp(2 * waiting.pause_ms, first, kMostResendMs);
    waiting.sent_ms = now;
  }
}

void Service::leave(int status, const std::string& reason) {
  if (leaving_) return;
  leaving_ = true;
  status_ = status;
  reason_ = reason;
  leaving_ms_ = clock_.steady_ms();
  if (status == kExitRefused) {
    compute_->cancel();
    cancelled_ = true;
    unacknowledged_.clear();
  }
}

void Service::look_at_signals() {
  if (!stop_requested() || cancelled_) return;
  log::info("worker", "signal: giving the running unit back");
  leave(kExitDone, "stopped by a signal");
  leaving_ms_ = clock_.steady_ms();
  compute_->cancel();
  cancelled_ = true;
}

void Service::look_at_contact() {
  if (!session_.empty()) contact_ms_ = clock_.steady_ms();
  const int64_t alone = clock_.steady_ms() - contact_ms_;
  if (session_.empty() && alone >= next_lonely_ms_) {
    log::warn("worker", fmt::format("no coordinator at {} for {} s; still trying (is the address "
                                    "right?)",
                                    options_.endpoint, alone / 1000));
    next_lonely_ms_ = alone + kLonelyMs;
  } else if (!session_.empty()) {
    next_lonely_ms_ = kFirstLonelyMs;
  }
  if (options_.idle_timeout_ms <= 0 || alone < options_.idle_timeout_ms || leaving_) return;
  const std::string reason =
      fmt::format("no coordinator at {} for {} s", options_.endpoint, alone / 1000);
  log::error("worker", reason);
  leave(kExitIdleTimeout, reason);
  compute_->cancel();
  cancelled_ = true;
}

std::optional<int> Service::gone() {
  if (!leaving_) return std::nullopt;
  const int64_t now = clock_.steady_ms();
  if (compute_->busy()) {
    if (!cancelled_) {
      leaving_ms_ = now;  // a drain lets the unit finish, however long that takes
      return std::nullopt;
    }
    if (now - leaving_ms_ < kCancelPatienceMs) return std::nullopt;
    // The computation does not look at `cancel`; its thread cannot be joined.
    release(compute_->lease_id(), reason_);
    send(wire::Bye{reason_});
    connection_.close();
    std::_Exit(status_);
  }
  const bool waiting = !unacknowledged_.empty() && now - leaving_ms_ < kAckPatienceMs;
  if (waiting) return std::nullopt;
  if (!session_.empty()) send(wire::Bye{reason_});
  return status_;
}

}  // namespace

int serve(const ServiceOptions& options, UnitRunner& runner) {
  const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0) {
    log::error("worker", "the system gives no event descriptor; raise the limit of open files");
    return kExitFailed;
  }
  install_stop_signals(wake_fd);
  Result<Connection> connection = Connection::open(options.endpoint);
  if (!connection.ok()) {
    log::error("worker", connection.error().message);
    return kExitUsage;
  }
  int status = kExitFailed;
  {
    Service service(options, std::move(*connection), runner, wake_fd);
    status = service.run();
  }
  close(wake_fd);
  return status;
}

}  // namespace kvsweep::service
