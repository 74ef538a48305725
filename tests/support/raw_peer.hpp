// A peer of the coordinator that the test drives message by message, or byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/wire/messages.hpp"

namespace kvsweep::test {

class RawPeer {
 public:
  explicit RawPeer(const std::string& endpoint);
  ~RawPeer();

  void send_bytes(const std::vector<std::string>& frames);
  void send(const wire::Message& message) { send_bytes({wire::encode(message)}); }
  std::optional<wire::Message> receive(int64_t ms);

  // The next message of this type, others skipped; nullopt after `ms`.
  template <typename T>
  std::optional<T> expect(int64_t ms) {
    for (int64_t waited = 0; waited < ms; waited += 100) {
      std::optional<wire::Message> message = receive(100);
      if (message && std::holds_alternative<T>(*message)) return std::get<T>(*message);
    }
    return std::nullopt;
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Sends bytes to a TCP port without speaking ZeroMQ, then hangs up.
void send_tcp(const std::string& endpoint, const std::string& bytes);

}  // namespace kvsweep::test
