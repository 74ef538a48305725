#include "worker/service/connection.hpp"

#include <fmt/format.h>

#include <zmq.hpp>

#include "core/log.hpp"

namespace kvsweep::service {

namespace {

constexpr int kLingerMs = 1000;
constexpr int kReconnectMs = 100;
constexpr int kReconnectMaxMs = 5000;
// A connection whose far end vanished without a word is closed, and opened anew, after this.
constexpr int kTransportHeartbeatMs = 5000;
constexpr int kTransportTimeoutMs = 15000;

}  // namespace

struct Connection::State {
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::dealer};
};

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

void Connection::close() {
  state_.reset();
}

Result<Connection> Connection::open(const std::string& endpoint) {
  try {
    auto state = std::make_unique<State>();
    zmq::socket_t& socket = state->socket;
    // No routing id of our own: the other side then gives every connection a fresh one, and never
    // refuses a reconnection because it still believes in the old one. Who we are is in Hello.
    socket.set(zmq::sockopt::immediate, 1);
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::maxmsgsize, wire::kMaxMessageBytes);
    socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
    socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMaxMs);
    socket.set(zmq::sockopt::heartbeat_ivl, kTransportHeartbeatMs);
    socket.set(zmq::sockopt::heartbeat_timeout, kTransportTimeoutMs);
    socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos ? 1 : 0);
    socket.connect(endpoint);
    return Connection(std::move(state));
  } catch (const zmq::error_t& e) {
    return bad_input(fmt::format(
        "cannot connect to '{}': {}; the address has the form tcp://HOST:PORT, as the coordinator "
        "prints it",
        endpoint, e.what()));
  }
}

bool Connection::send(const wire::Message& message) {
  const std::string bytes = wire::encode(message);
  while (true) {
    try {
      return state_->socket.send(zmq::buffer(bytes), zmq::send_flags::dontwait).has_value();
    } catch (const zmq::error_t& e) {
      if (e.num() != EINTR) throw;
    }
  }
}

std::optional<Result<wire::Message>> Connection::receive() {
  while (true) {
    zmq::message_t frame;
    try {
      if (!state_->socket.recv(frame, zmq::recv_flags::dontwait)) return std::nullopt;
    } catch (const zmq::error_t& e) {
      if (e.num() == EINTR) continue;
      throw;
    }
    Result<wire::Message> message = wire::decode(frame.to_string_view());
    if (message.ok() || message.error().code == ErrorCode::conflict) return message;
    log::warn("worker", "dropped a message of the coordinator: " + message.error().message);
  }
}

void Connection::wait(int64_t ms, int wake_fd) {
  zmq::pollitem_t items[] = {{state_->socket.handle(), 0, ZMQ_POLLIN, 0},
                             {nullptr, wake_fd, ZMQ_POLLIN, 0}};
  zmq_poll(items, 2, static_cast<long>(ms));  // NOLINT; an interruption is as good as a message
}

}  // namespace kvsweep::service
