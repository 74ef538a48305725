#include "worker/model/config_fields.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/gguf.hpp"
#include "core/model_config.hpp"

namespace kvsweep::model {

ConfigFields::ConfigFields(Json json, std::string where, std::string prefix)
    : json_(std::move(json)), where_(std::move(where)), prefix_(std::move(prefix)) {}

Result<ConfigFields> ConfigFields::read(const std::string& path) {
  KVSWEEP_ASSIGN(Json json, read_json_file(path));
  if (!json.is_object()) {
    return bad_input(path + " must hold one JSON object, as Hugging Face writes it");
  }
  return ConfigFields(std::move(json), path);
}

Result<ConfigFields> ConfigFields::read_model(const std::string& model) {
  if (!is_gguf_path(model)) return read(model_config_path(model));
  KVSWEEP_ASSIGN(Json json, read_model_config(model));
  return ConfigFields(std::move(json), model_config_path(model));
}

bool ConfigFields::has(const std::string& name) const {
  const auto found = json_.find(name);
  return found != json_.end() && !found->is_null();
}

bool ConfigFields::is_null(const std::string& name) const {
  const auto found = json_.find(name);
  return found != json_.end() && found->is_null();
}

bool ConfigFields::same(const std::string& a, const std::string& b) const {
  return has(a) && has(b) && json_.at(a) == json_.at(b);
}

Error ConfigFields::error(const std::string& name, const std::string& what) const {
  return bad_input(fmt::format("{}: {}{} {}", where_, prefix_, name, what));
}

Error ConfigFields::missing(const std::string& name) const {
  return error(name, "is missing");
}

Error ConfigFields::mistyped(const std::string& name, const std::string& expected) const {
  std::string found = json_.at(name).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > 60) found = found.substr(0, 57) + "...";
  return error(name, fmt::format("is {} and must be {}", found, expected));
}

Result<int64_t> ConfigFields::integer(const std::string& name, int64_t low, int64_t high,
                                      std::optional<int64_t> fallback) const {
  if (!has(name)) {
    if (fallback) return *fallback;
    return missing(name);
  }
  const Json& value = json_.at(name);
  const std::string expected = fmt::format("a whole number from {} to {}", low, high);
  if (!value.is_number_integer()) return mistyped(name, expected);
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) {
    return mistyped(name, expected);
  }
  const int64_t number = value.get<int64_t>();
  if (number < low || number > high) return mistyped(name, expected);
  return number;
}

Result<double> ConfigFields::positive(const std::string& name,
                                      std::optional<double> fallback) const {
  if (!has(name)) {
    if (fallback) return *fallback;
    return missing(name);
  }
  const Json& value = json_.at(name);
  if (!value.is_number()) return mistyped(name, "a number above zero");
  const double number = value.get<double>();
  if (!std::isfinite(number) || number <= 0) return mistyped(name, "a number above zero");
  return number;
}

Result<bool> ConfigFields::boolean(const std::string& name, bool fallback) const {
  if (!has(name)) return fallback;
  if (!json_.at(name).is_boolean()) return mistyped(name, "true or false");
  return json_.at(name).get<bool>();
}

Result<std::string> ConfigFields::text(const std::string& name,
                                       std::optional<std::string> fallback) const {
  if (!has(name)) {
    if (fallback) return *fallback;
    return missing(name);
  }
  if (!json_.at(name).is_string()) return mistyped(name, "a string");
  return json_.at(name).get<std::string>();
}

Result<std::vector<std::string>> ConfigFields::texts(const std::string& name) const {
  if (!has(name)) return missing(name);
  const Json& value = json_.at(name);
  if (!value.is_array()) return mistyped(name, "a list of strings");
  std::vector<std::string> out;
  for (const Json& entry : value) {
    if (!entry.is_string()) return mistyped(name, "a list of strings");
    out.push_back(entry.get<std::string>());
  }
  return out;
}

Result<std::vector<int64_t>> ConfigFields::integers(const std::string& name, int64_t low,
                                                    int64_t high) const {
  if (!has(name)) return missing(name);
  const std::string expected = fmt::format("a list of whole numbers from {} to {}", low, high);
  if (!json_.at(name).is_array()) return mistyped(name, expected);
  std::vector<int64_t> out;
  for (const Json& entry : json_.at(name)) {
    const bool fits = entry.is_number_integer() &&
                      !(entry.is_number_unsigned() && entry.get<uint64_t>() > INT64_MAX) &&
                      entry.get<int64_t>() >= low && entry.get<int64_t>() <= high;
    if (!fits) return mistyped(name, expected);
    out.push_back(entry.get<int64_t>());
  }
  return out;
}

Result<std::vector<double>> ConfigFields::positives(const std::string& name) const {
  if (!has(name)) return missing(name);
  const std::string expected = "a list of numbers above zero";
  if (!json_.at(name).is_array()) return mistyped(name, expected);
  std::vector<double> out;
  for (const Json& entry : json_.at(name)) {
    const double number = entry.is_number() ? entry.get<double>() : 0.0;
    if (!std::isfinite(number) || number <= 0) return mistyped(name, expected);
    out.push_back(number);
  }
  return out;
}

Result<ConfigFields> ConfigFields::object(const std::string& name) const {
  if (!has(name)) return missing(name);
  if (!json_.at(name).is_object()) return mistyped(name, "an object");
  return ConfigFields(json_.at(name), where_, prefix_ + name + ".");
}

ConfigFields ConfigFields::empty(const std::string& name) const {
  return ConfigFields(Json::object(), where_, prefix_ + name + ".");
}

}  // namespace kvsweep::model
