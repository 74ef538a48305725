#include "coordinator/bind_address.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace kvsweep::coordinator {

namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";

std::string_view host_of(std::string_view endpoint) {
  std::string_view rest = endpoint.substr(kTcp.size());
  return rest.substr(0, rest.rfind(':'));
}

bool good_port(std::string_view port) {
  if (port == "*") return true;
  int value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  return error == std::errc() && end == port.data() + port.size() && value >= 0 && value <= 65535;
}

// "127.x.y.z" with numbers only: a host name may well begin with "127.".
bool is_loopback_v4(std::string_view host) {
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

bool is_loopback(const std::string& endpoint) {
  if (endpoint.starts_with(kIpc)) return true;
  if (!endpoint.starts_with(kTcp)) return false;
  const std::string_view host = host_of(endpoint);
  return host == "localhost" || host == "[::1]" || is_loopback_v4(host);
}

Status check_bind(const std::string& endpoint, bool insecure) {
  const bool ipc = endpoint.starts_with(kIpc) && endpoint.size() > kIpc.size();
  bool tcp = false;
  if (endpoint.starts_with(kTcp)) {
    const size_t colon = endpoint.rfind(':');
    tcp = colon > kTcp.size() && good_port(std::string_view(endpoint).substr(colon + 1));
  }
  if (!ipc && !tcp) {
    return bad_input(
        fmt::format("cannot listen on '{}': an address has the form tcp://HOST:PORT (ports 0 to "
                    "65535, or *) or ipc://PATH, for "
                    "example tcp://127.0.0.1:5555",
                    endpoint));
  }
  if (!is_loopback(endpoint) && !insecure) {
    return bad_input(fmt::format(
        "cannot listen on '{}': whoever reaches that address could send work and results; listen "
        "on tcp://127.0.0.1:PORT, or give --insecure on a network that you trust",
        endpoint));
  }
  return {};
}

std::string numeric_loopback(const std::string& endpoint) {
  constexpr std::string_view kLocalhost = "tcp://localhost:";
  if (!endpoint.starts_with(kLocalhost)) return endpoint;
  return "tcp://127.0.0.1:" + endpoint.substr(kLocalhost.size());
}

std::string local_address(const std::string& bound) {
  for (const std::string_view any : {"tcp://0.0.0.0:", "tcp://*:"}) {
    if (bound.starts_with(any)) return "tcp://127.0.0.1:" + bound.substr(any.size());
  }
  if (bound.starts_with("tcp://[::]:")) return "tcp://[::1]:" + bound.substr(11);
  return bound;
}

}  // namespace kvsweep::coordinator
