// JsonReader: strict reading of one JSON object, for messages, database rows and files. Getters
// return a usable default after the first problem and `done` reports that problem, so that a
// reader is a list of fields and not a list of checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep {

class JsonReader {
 public:
  // `where` starts every message ("config.json", "result"). `object` must outlive the reader.
  JsonReader(const Json& object, std::string where);

  // Integers must be JSON integers (not 1.0) within [low, high]; numbers finite within
  // [low, high]; strings valid UTF-8 of at most `max_bytes`.
  int64_t integer(std::string_view key, int64_t low, int64_t high);
  double number(std::string_view key, double low, double high);
  bool boolean(std::string_view key);
  std::string string(std::string_view key, size_t max_bytes);
  // nullopt when the key is absent or null.
  std::optional<int64_t> optional_integer(std::string_view key, int64_t low, int64_t high);
  std::optional<double> optional_number(std::string_view key, double low, double high);
  std::optional<std::string> optional_string(std::string_view key, size_t max_bytes);

  std::vector<int64_t> integers(std::string_view key, int64_t low, int64_t high, size_t max_count);
  std::vector<int32_t> tokens(std::string_view key, size_t max_count);  // ids in [0, 2^31)
  std::vector<std::string> strings(std::string_view key, size_t max_bytes, size_t max_count);

  // The member itself; nullptr (and an error, unless `absent_ok`) when it is not of that kind.
  const Json* object(std::string_view key, bool absent_ok = false);
  const Json* array(std::string_view key, size_t max_count, bool absent_ok = false);

  bool has(std::string_view key) const;  // present and not null

  // For checks of the caller's own.
  void fail(std::string_view key, const std::string& what);
  void fail(const Error& error);
  // Takes the value of a result, or remembers its error and returns a default.
  template <typename T>
  T take(Result<T> result) {
    if (result.ok()) return std::move(result).value();
    fail(result.error());
    return T{};
  }

  Status done() const;

 private:
  const Json* find(std::string_view key) const;
  const Json* require(std::string_view key);
  int64_t checked_integer(std::string_view key, const Json& value, int64_t low, int64_t high);
  double checked_number(std::string_view key, const Json& value, double low, double high);
  std::string checked_string(std::string_view key, const Json& value, size_t max_bytes);

  const Json& object_;
  std::string where_;
  std::optional<Error> error_;
};

// A value as an error message shows it: compact, cut after 40 characters.
std::string shown(const Json& value);

}  // namespace kvsweep
