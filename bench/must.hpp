// What the benchmark programs share: an error ends them with one sentence.
#pragma once

#include <errno.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "core/result.hpp"

namespace kvsweep::bench {

[[noreturn]] inline void fail(const std::string& message) {
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, message);
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) fail(result.error().message);
  return std::move(result).value();
}

inline int64_t number(const std::string& text, int64_t low = 1) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < low) {
    fail(fmt::format("\"{}\" must be a whole number of at least {}", text, low));
  }
  return value;
}

// Hands every pair of "--name value" to `set`.
inline void each_option(int count, char** arguments,
                        const std::function<void(const std::string&, const std::string&)>& set) {
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) fail(std::string(arguments[i]) + " needs a value");
    set(arguments[i], arguments[i + 1]);
  }
}

// For the header that names the machine.
inline std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace kvsweep::bench
