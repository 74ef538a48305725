// Connection: the worker's DEALER socket with the message format of core/wire on top.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "core/wire/messages.hpp"

namespace kvsweep::service {

// Single-threaded. Connects in the background and reconnects for ever with a pause that grows from
// 0.1 s to 5 s.
class Connection {
 public:
  // bad_input when the address cannot be one.
  static Result<Connection> open(const std::string& endpoint);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();  // closes

  // Waits at most a second for what is not sent yet. Nothing else may be called afterwards.
  void close();

  // False when nobody is connected at the other end (or the queue is full): nothing was sent.
  bool send(const wire::Message& message);

  // nullopt when nothing waits. Malformed messages are logged and skipped; `conflict` is returned,
  // since a coordinator of another protocol version will not be understood later either.
  std::optional<Result<wire::Message>> receive();

  // Until a message may wait, `wake_fd` is readable, or `ms` have passed.
  void wait(int64_t ms, int wake_fd);

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::service
