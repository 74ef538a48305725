// Typed access to the fields of a config.json, with errors that name file, field and value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep::model {

class ConfigFields {
 public:
  // `json` must be an object. `where` (a path) starts every message; `prefix` ("rope_scaling.") is
  // put before field names.
  ConfigFields(Json json, std::string where, std::string prefix = "");
  static Result<ConfigFields> read(const std::string& path);
  // Of a model folder or a GGUF file, whose metadata are given the names of config.json.
  static Result<ConfigFields> read_model(const std::string& model);

  const std::string& where() const { return where_; }
  // Present and not null: Hugging Face writes null for "not set".
  bool has(const std::string& name) const;
  // Present and null, which for some fields differs from absent.
  bool is_null(const std::string& name) const;
  // Whether both are present and equal.
  bool same(const std::string& a, const std::string& b) const;

  // The value, or `fallback` when absent; an absent field without fallback is an error.
  Result<int64_t> integer(const std::string& name, int64_t low, int64_t high,
                          std::optional<int64_t> fallback = {}) const;
  // A finite number above zero.
  Result<double> positive(const std::string& name, std::optional<double> fallback = {}) const;
  Result<bool> boolean(const std::string& name, bool fallback) const;
  Result<std::string> text(const std::string& name, std::optional<std::string> fallback = {}) const;
  Result<std::vector<std::string>> texts(const std::string& name) const;
  // Whole numbers from `low` to `high`; finite numbers above zero.
  Result<std::vector<int64_t>> integers(const std::string& name, int64_t low, int64_t high) const;
  Result<std::vector<double>> positives(const std::string& name) const;
  Result<ConfigFields> object(const std::string& name) const;
  // An object without fields, for one that is absent.
  ConfigFields empty(const std::string& name) const;

  // bad_input: "<where>: <prefix><name> <what>".
  Error error(const std::string& name, const std::string& what) const;

 private:
  Error missing(const std::string& name) const;
  Error mistyped(const std::string& name, const std::string& expected) const;

  Json json_;
  std::string where_;
  std::string prefix_;
};

}  // namespace kvsweep::model
