#include "tests/support/raw_peer.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.hpp>

namespace kvsweep::test {

struct RawPeer::State {
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::dealer};
};

RawPeer::RawPeer(const std::string& endpoint) : state_(std::make_unique<State>()) {
  state_->socket.set(zmq::sockopt::linger, 1000);
  state_->socket.connect(endpoint);
}

RawPeer::~RawPeer() = default;

void RawPeer::send_bytes(const std::vector<std::string>& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    const bool last = i + 1 == frames.size();
    state_->socket.send(zmq::buffer(frames[i]),
                        last ? zmq::send_flags::none : zmq::send_flags::sndmore);
  }
}

std::optional<wire::Message> RawPeer::receive(int64_t ms) {
  zmq::pollitem_t item{state_->socket.handle(), 0, ZMQ_POLLIN, 0};
  if (zmq_poll(&item, 1, static_cast<long>(ms)) <= 0) return std::nullopt;  // NOLINT
  zmq::message_t frame;
  if (!state_->socket.recv(frame, zmq::recv_flags::dontwait)) return std::nullopt;
  auto message = wire::decode(frame.to_string_view());
  if (!message.ok()) return std::nullopt;
  return *message;
}

void send_tcp(const std::string& endpoint, const std::string& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port =
      htons(static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    [[maybe_unused]] const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  close(fd);
}

}  // namespace kvsweep::test
