// Result<T>: how expected outcomes (file not readable, bad spec, out of memory) reach the caller.
// Broken invariants throw instead; asserts never depend on input.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace kvsweep {

// One list for every expected failure. The first seven are the failure classes of a work unit
// (each has its own retry rule in coordinator/retry.hpp); the rest never leave the process that
// met them.
enum class ErrorCode {
  oom,          // memory or cache budget exhausted while running a unit
  timeout,      // the unit ran past its deadline
  preempted,    // the worker was asked to stop; never charged to the unit
  worker_lost,  // the lease expired without a word
  numerics,     // NaN or infinity where a finite number is required
  bad_input,    // a file, spec, option or message is wrong; retrying cannot help
  internal,     // everything that should not happen
  not_found,    // a named thing does not exist
  io,           // the operating system refused (permission, disk full, port in use)
  conflict,     // a newer schema, another protocol version, a lock held by someone else
};

std::string_view to_string(ErrorCode code);
std::optional<ErrorCode> error_code_from(std::string_view name);

// `message` is one sentence for a person: what was wrong, the value, what is allowed, what to do.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
};

inline Error bad_input(std::string message) {
  return {ErrorCode::bad_input, std::move(message)};
}
inline Error io_error(std::string message) {
  return {ErrorCode::io, std::move(message)};
}
inline Error not_found(std::string message) {
  return {ErrorCode::not_found, std::move(message)};
}

// Holds a T or an Error. Reading the side that is absent is a broken invariant.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Result<void>: success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace kvsweep

// Leaves the enclosing function with the error of `expr`, or continues.
#define KVSWEEP_TRY(expr)                               \
  do {                                                  \
    if (auto kvsweep_try_ = (expr); !kvsweep_try_.ok()) \
      return ::kvsweep::Error(kvsweep_try_.error());    \
  } while (false)

// Declares `lhs` from the value of `expr`, or leaves the enclosing function with its error.
#define KVSWEEP_CONCAT_(a, b) a##b
#define KVSWEEP_CONCAT(a, b) KVSWEEP_CONCAT_(a, b)
#define KVSWEEP_ASSIGN_(tmp, lhs, expr)                \
  auto tmp = (expr);                                   \
  if (!tmp.ok()) return ::kvsweep::Error(tmp.error()); \
  lhs = std::move(tmp).value()
#define KVSWEEP_ASSIGN(lhs, expr) KVSWEEP_ASSIGN_(KVSWEEP_CONCAT(kvsweep_res_, __LINE__), lhs, expr)
