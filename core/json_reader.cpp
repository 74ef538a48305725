#include "core/json_reader.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/text.hpp"

namespace kvsweep {

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr size_t kLongest = 40;
  if (text.size() <= kLongest) return text;
  size_t cut = kLongest - 3;  // never inside a UTF-8 sequence
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return text.substr(0, cut) + "...";
}

JsonReader::JsonReader(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) {
    error_ = bad_input(where_ + ": expected an object, found " + shown(object_));
  }
}

const Json* JsonReader::find(std::string_view key) const {
  if (!object_.is_object()) return nullptr;
  const auto it = object_.find(key);
  return it == object_.end() ? nullptr : &*it;
}

const Json* JsonReader::require(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "is missing");
  return value;
}

bool JsonReader::has(std::string_view key) const {
  const Json* value = find(key);
  return value != nullptr && !value->is_null();
}

void JsonReader::fail(std::string_view key, const std::string& what) {
  if (!error_) error_ = bad_input(fmt::format("{}: \"{}\" {}", where_, key, what));
}

void JsonReader::fail(const Error& error) {
  if (!error_) error_ = error;
}

Status JsonReader::done() const {
  if (error_) return *error_;
  return {};
}

int64_t JsonReader::checked_integer(std::string_view key, const Json& value, int64_t low,
                                    int64_t high) {
  const bool fits =
      value.is_number_unsigned()
          ? value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
          : value.is_number_integer();
  if (fits) {
    const int64_t number = value.get<int64_t>();
    if (number >= low && number <= high) return number;
  }
  fail(key, fmt::format("is {}; it must be a whole number from {} to {}", shown(value), low, high));
  return low;
}

double JsonReader::checked_number(std::string_view key, const Json& value, double low,
                                  double high) {
  if (value.is_number()) {
    const double number = value.get<double>();
    if (std::isfinite(number) && number >= low && number <= high) return number;
  }
  fail(key, fmt::format("is {}; it must be a number from {} to {}", shown(value), low, high));
  return low;
}

std::string JsonReader::checked_string(std::string_view key, const Json& value, size_t max_bytes) {
  if (!value.is_string()) {
    fail(key, "is " + shown(value) + "; it must be a text");
    return "";
  }
  const std::string& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes) {
    fail(key, fmt::format("is {} bytes long; at most {} are allowed", text.size(), max_bytes));
    return "";
  }
  if (!valid_utf8(text)) {
    fail(key, "is not valid UTF-8");
    return "";
  }
  return text;
}

int64_t JsonReader::integer(std::string_view key, int64_t low, int64_t high) {
  const Json* value = require(key);
  return value ? checked_integer(key, *value, low, high) : low;
}

double JsonReader::number(std::string_view key, double low, double high) {
  const Json* value = require(key);
  return value ? checked_number(key, *value, low, high) : low;
}

bool JsonReader::boolean(std::string_view key) {
  const Json* value = require(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) fail(key, "is " + shown(*value) + "; it must be true or false");
  return value->is_boolean() && value->get<bool>();
}

std::string JsonReader::string(std::string_view key, size_t max_bytes) {
  const Json* value = require(key);
  return value ? checked_string(key, *value, max_bytes) : "";
}

std::optional<int64_t> JsonReader::optional_integer(std::string_view key, int64_t low,
                                                    int64_t high) {
  if (!has(key)) return std::nullopt;
  return integer(key, low, high);
}

std::optional<double> JsonReader::optional_number(std::string_view key, double low, double high) {
  if (!has(key)) return std::nullopt;
  return number(key, low, high);
}

std::optional<std::string> JsonReader::optional_string(std::string_view key, size_t max_bytes) {
  if (!has(key)) return std::nullopt;
  return string(key, max_bytes);
}

std::vector<int64_t> JsonReader::integers(std::string_view key, int64_t low, int64_t high,
                                          size_t max_count) {
  std::vector<int64_t> numbers;
  const Json* list = array(key, max_count);
  if (list == nullptr) return numbers;
  numbers.reserve(list->size());
  for (const Json& item : *list) numbers.push_back(checked_integer(key, item, low, high));
  return numbers;
}

std::vector<int32_t> JsonReader::tokens(std::string_view key, size_t max_count) {
  std::vector<int32_t> ids;
  const Json* list = array(key, max_count);
  if (list == nullptr) return ids;
  ids.reserve(list->size());
  for (const Json& item : *list) {
    ids.push_back(
        static_cast<int32_t>(checked_integer(key, item, 0, std::numeric_limits<int32_t>::max())));
  }
  return ids;
}

std::vector<std::string> JsonReader::strings(std::string_view key, size_t max_bytes,
                                             size_t max_count) {
  std::vector<std::string> texts;
  const Json* list = array(key, max_count);
  if (list == nullptr) return texts;
  texts.reserve(list->size());
  for (const Json& item : *list) texts.push_back(checked_string(key, item, max_bytes));
  return texts;
}

const Json* JsonReader::object(std::string_view key, bool absent_ok) {
  const Json* value = absent_ok && !has(key) ? nullptr : require(key);
  if (value == nullptr || value->is_object()) return value;
  fail(key, "is " + shown(*value) + "; it must be an object");
  return nullptr;
}

const Json* JsonReader::array(std::string_view key, size_t max_count, bool absent_ok) {
  const Json* value = absent_ok && !has(key) ? nullptr : require(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    fail(key, "is " + shown(*value) + "; it must be a list");
    return nullptr;
  }
  if (value->size() > max_count) {
    fail(key, fmt::format("has {} entries; at most {} are allowed", value->size(), max_count));
    return nullptr;
  }
  return value;
}

}  // namespace kvsweep
