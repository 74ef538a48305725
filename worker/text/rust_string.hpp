// Owners for what the Rust library hands out. Internal to worker/text and its tests.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "worker/rust/kvsweep_rs.h"

namespace kvsweep::text {

struct RustStringFree {
  void operator()(char* text) const { kvs_string_free(text); }
};
using RustString = std::unique_ptr<char, RustStringFree>;

// Receives the message of one call: pass `slot()`, then read `text()`.
class RustError {
 public:
  RustError() = default;
  ~RustError() { kvs_string_free(message_); }
  RustError(const RustError&) = delete;
  RustError& operator=(const RustError&) = delete;

  char** slot() { return &message_; }
  bool set() const { return message_ != nullptr; }
  std::string text() const { return message_ ? message_ : "out of memory"; }

 private:
  char* message_ = nullptr;
};

// A copy of the `length` bytes, which may contain zero bytes; `owned` is given back.
inline std::string take_string(RustString owned, size_t length) {
  return std::string(owned.get(), length);
}

}  // namespace kvsweep::text
