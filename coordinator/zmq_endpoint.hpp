// ZmqEndpoint: the coordinator's ROUTER socket inside a Boost.Asio loop, with the message format of
// core/wire on top. What is not a valid message never leaves this class.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/wire/messages.hpp"

namespace kvsweep::coordinator {

struct Incoming {
  std::string peer;  // routing id, chosen by the socket; changes when a worker reconnects
  wire::Message message;
};

enum class SendOutcome { sent, unreachable };

struct EndpointCounters {
  int64_t received = 0;        // valid messages
  int64_t malformed = 0;       // dropped
  int64_t other_protocol = 0;  // answered with Refuse
  int64_t sent = 0;
  int64_t unreachable = 0;  // the peer was gone or its queue full
};

// Single-threaded. The Asio loop runs only inside `wait`.
class ZmqEndpoint {
 public:
  // bad_input for an address that may not be bound (bind_address.hpp), io when the system refuses;
  // both name the address.
  static Result<ZmqEndpoint> bind(const std::string& address, bool insecure);
  ZmqEndpoint(ZmqEndpoint&&) noexcept;
  ZmqEndpoint& operator=(ZmqEndpoint&&) noexcept;
  ~ZmqEndpoint();

  const std::string& address() const;  // as bound, the port filled in

  // Returns when a message may be waiting or after `ms`, whichever comes first.
  void wait(int64_t ms);

  // Everything waiting, at most `limit` messages. Malformed ones are counted, logged (at most once
  // a second) and dropped; a Hello of another protocol version is answered with Refuse.
  std::vector<Incoming> receive(size_t limit);

  // Never blocks.
  SendOutcome send(const std::string& peer, const wire::Message& message);

  const EndpointCounters& counters() const;

 private:
  struct State;
  explicit ZmqEndpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::coordinator
