// YamlReader: reading of one YAML mapping with errors that give file, line, column and the
// nearest known key. Internal to core: YAML stays behind study_spec.hpp.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace kvsweep {

// One per file; keeps the first error.
struct YamlContext {
  std::string where;  // path of the file
  std::optional<Error> error;

  void fail(const YAML::Mark& mark, const std::string& message);
};

class YamlReader {
 public:
  // `path` names the mapping in messages ("search"; "" = the top). Reports a node that is not a
  // mapping, a key that is no plain text, a key that appears twice and a key not in `known`.
  YamlReader(const YAML::Node& node, std::string path, std::vector<std::string> known,
             YamlContext& context);

  bool has(const std::string& key) const;
  YAML::Node get(const std::string& key) const;   // must be there
  YAML::Mark mark(const std::string& key) const;  // of the value; of the mapping when absent
  YAML::Mark mark() const { return mark_; }

  // Each leaves `out` as it was when the key is absent, and reports a value of the wrong kind.
  template <typename Integer>
  void read(const std::string& key, Integer& out, int64_t low, int64_t high) {
    if (const auto value = integer(key, low, high)) out = static_cast<Integer>(*value);
  }
  std::optional<int64_t> integer(const std::string& key, int64_t low, int64_t high);
  std::optional<double> number(const std::string& key, double low, double high);
  std::optional<std::string> text(const std::string& key);

  // `what` is the reason, without the key: "must be ...".
  void fail(const std::string& key, const std::string& what);
  std::string name_of(const std::string& key) const;  // "search.trials"

 private:
  void check_keys(const YAML::Node& node);
  void report_unknown(const YAML::Node& key);

  YAML::Node node_;
  YAML::Mark mark_;
  std::string path_;
  std::vector<std::string> known_;
  YamlContext& context_;
};

// What a value is, for messages: its text, "a list", "a map", "empty".
std::string shown(const YAML::Node& node);

}  // namespace kvsweep
