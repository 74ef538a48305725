#include "coordinator/zmq_endpoint.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <zmq.hpp>

#include "coordinator/bind_address.hpp"
#include "coordinator/coordinator.hpp"
#include "core/log.hpp"

namespace kvsweep::coordinator {

namespace asio = boost::asio;

namespace {

constexpr int kLingerMs = 2000;       // for the last acks and Bye when the program ends
constexpr int kSendHighWater = 1000;  // messages per worker; one that reads nothing is unreachable
// A connection whose far end vanished without a word (machine off, cable out) is closed after this.
constexpr int kTransportHeartbeatMs = 5000;
constexpr int kTransportTimeoutMs = 15000;
constexpr auto kLogInterval = std::chrono::seconds(1);

std::string hex(const std::string& routing_id) {
  std::string text;
  for (unsigned char c : routing_id) text += fmt::format("{:02x}", c);
  return text;
}

}  // namespace

struct ZmqEndpoint::State {
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::router};
  asio::io_context io;
  // Asio watches the descriptor but does not own it: ZeroMQ closes it.
  asio::posix::stream_descriptor descriptor{io};
  asio::steady_timer timer{io};
  bool armed = false;
  std::string address;
  EndpointCounters counters;
  std::chrono::steady_clock::time_point last_log{};
  int64_t unlogged = 0;

  ~State() {
    if (descriptor.is_open()) descriptor.release();
  }

  // The descriptor is edge-triggered: it tells only that ZMQ_EVENTS may have changed, and any send,
  // receive or reading of ZMQ_EVENTS uses the edge up. So ZMQ_EVENTS decides, always.
  bool readable() { return (socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0; }

  void arm() {
    if (armed) return;
    armed = true;
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this](const boost::system::error_code&) { armed = false; });
  }

  void malformed(const std::string& peer, const std::string& why);
  void take(std::vector<zmq::message_t> frames, std::vector<Incoming>& out);
  bool receive_frame(zmq::message_t& frame);
  bool send(const std::string& peer, const std::string& bytes);
};

void ZmqEndpoint::State::malformed(const std::string& peer, const std::string& why) {
  ++counters.malformed;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_log < kLogInterval) {
    ++unlogged;
    return;
  }
  last_log = now;
  const std::string more = unlogged > 0 ? fmt::format(" ({} more since the last)", unlogged) : "";
  unlogged = 0;
  log::warn("endpoint", fmt::format("dropped a message of peer {}: {}{}", hex(peer), why, more));
}

void ZmqEndpoint::State::take(std::vector<zmq::message_t> frames, std::vector<Incoming>& out) {
  const std::string peer = frames.front().to_string();
  if (frames.size() != 2) {
    return malformed(peer, fmt::format("{} frames instead of one", frames.size() - 1));
  }
  Result<wire::Message> message = wire::decode(frames[1].to_string_view());
  if (message.ok()) {
    ++counters.received;
    out.push_back({peer, std::move(message).value()});
    return;
  }
  malformed(peer, message.error().message);
  if (message.error().code != ErrorCode::conflict) return;
  ++counters.other_protocol;
  send(peer, wire::encode(wire::Refuse{message.error().message}));
}

bool ZmqEndpoint::State::receive_frame(zmq::message_t& frame) {
  while (true) {
    try {
      return socket.recv(frame, zmq::recv_flags::dontwait).has_value();
    } catch (const zmq::error_t& e) {
      if (e.num() != EINTR) throw;  // a signal, and its handler only sets a flag
    }
  }
}

bool ZmqEndpoint::State::send(const std::string& peer, const std::string& bytes) {
  try {
    const auto flags = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
    return socket.send(zmq::buffer(peer), flags) &&
           socket.send(zmq::buffer(bytes), zmq::send_flags::dontwait);
  } catch (const zmq::error_t& e) {
    if (e.num() != EHOSTUNREACH && e.num() != EINTR) throw;
    return false;
  }
}

ZmqEndpoint::ZmqEndpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
ZmqEndpoint::ZmqEndpoint(ZmqEndpoint&&) noexcept = default;
ZmqEndpoint& ZmqEndpoint::operator=(ZmqEndpoint&&) noexcept = default;
ZmqEndpoint::~ZmqEndpoint() = default;

Result<ZmqEndpoint> ZmqEndpoint::bind(const std::string& address, bool insecure) {
  KVSWEEP_TRY(check_bind(address, insecure));
  try {
    auto state = std::make_unique<State>();
    zmq::socket_t& socket = state->socket;
    socket.set(zmq::sockopt::router_mandatory, 1);
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::maxmsgsize, wire::kMaxMessageBytes);
    socket.set(zmq::sockopt::sndhwm, kSendHighWater);
    socket.set(zmq::sockopt::heartbeat_ivl, kTransportHeartbeatMs);
    socket.set(zmq::sockopt::heartbeat_timeout, kTransportTimeoutMs);
    socket.set(zmq::sockopt::ipv6, address.find('[') != std::string::npos ? 1 : 0);
    socket.bind(numeric_loopback(address));
    state->address = socket.get(zmq::sockopt::last_endpoint);
    state->descriptor.assign(socket.get(zmq::sockopt::fd));
    return ZmqEndpoint(std::move(state));
  } catch (const zmq::error_t& e) {
    const char* advice = e.num() == EADDRINUSE
                             ? "another program listens there, perhaps another coordinator; stop "
                               "it or choose another port"
                             : "choose a numeric address of this machine, such as 127.0.0.1";
    return io_error(fmt::format("cannot listen on {}: {}; {}", address, e.what(), advice));
  }
}

const std::string& ZmqEndpoint::address() const {
  return state_->address;
}
const EndpointCounters& ZmqEndpoint::counters() const {
  return state_->counters;
}

void ZmqEndpoint::wait(int64_t ms) {
  State& s = *state_;
  if (s.readable()) return;
  s.arm();
  // An edge between the test above and arming is still pending in the descriptor, so it fires.
  s.timer.expires_after(std::chrono::milliseconds(ms));
  s.timer.async_wait([](const boost::system::error_code&) {});
  s.io.restart();
  s.io.run_one();
  s.timer.cancel();
  s.io.poll();
}

std::vector<Incoming> ZmqEndpoint::receive(size_t limit) {
  State& s = *state_;
  std::vector<Incoming> messages;
  // Malformed messages count against the limit too, so that a flood cannot hold the loop.
  for (size_t taken = 0; taken < limit; ++taken) {
    std::vector<zmq::message_t> frames;
    do {
      zmq::message_t frame;
      if (!s.receive_frame(frame)) return messages;
      frames.push_back(std::move(frame));
    } while (frames.back().more());
    s.take(std::move(frames), messages);
  }
  return messages;
}

SendOutcome ZmqEndpoint::send(const std::string& peer, const wire::Message& message) {
  State& s = *state_;
  if (s.send(peer, wire::encode(message))) {
    ++s.counters.sent;
    return SendOutcome::sent;
  }
  ++s.counters.unreachable;
  return SendOutcome::unreachable;
}

std::string zmq_version() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  ::zmq_version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace kvsweep::coordinator
