#include "core/yaml_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/text.hpp"

namespace kvsweep {
namespace {

// yaml-cpp tags a quoted scalar "!": "5" in quotes is a text, 5 is a number.
bool is_quoted(const YAML::Node& node) {
  return node.Tag() == "!";
}

template <typename T>
std::optional<T> parsed(const YAML::Node& node) {
  if (!node.IsScalar() || is_quoted(node)) return std::nullopt;
  const std::string& text = node.Scalar();
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  T value{};
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || begin == end) return std::nullopt;
  return value;
}

}  // namespace

std::string shown(const YAML::Node& node) {
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) return "a list";
  if (!node.IsScalar()) return "empty";
  std::string text = replace_invalid_utf8(node.Scalar().substr(0, 60));
  return is_quoted(node) ? "the text \"" + text + "\"" : "\"" + text + "\"";
}

void YamlContext::fail(const YAML::Mark& mark, const std::string& message) {
  if (error) return;
  error = bad_input(fmt::format("{}:{}:{}: {}", where, mark.line + 1, mark.column + 1, message));
}

YamlReader::YamlReader(const YAML::Node& node, std::string path, std::vector<std::string> known,
                       YamlContext& context)
    : mark_(node.Mark()), path_(std::move(path)), known_(std::move(known)), context_(context) {
  if (!node.IsMap()) {
    const std::string what = path_.empty() ? "the file" : "\"" + path_ + "\"";
    context_.fail(mark_, fmt::format("{} must be a map of keys ({}), but it is {}", what,
                                     join(known_, ", "), shown(node)));
    return;
  }
  node_.reset(node);
  check_keys(node);
}

void YamlReader::check_keys(const YAML::Node& node) {
  std::set<std::string> seen;
  for (const auto& member : node) {
    if (!member.first.IsScalar()) {
      context_.fail(member.first.Mark(),
                    "a key must be a plain word, but it is " + shown(member.first));
      return;
    }
    const std::string& key = member.first.Scalar();
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      report_unknown(member.first);
    } else if (!seen.insert(key).second) {
      context_.fail(member.first.Mark(),
                    fmt::format("key \"{}\" appears twice; keep one of them", name_of(key)));
    }
  }
}

void YamlReader::report_unknown(const YAML::Node& key) {
  const std::string near = nearest_word(key.Scalar(), known_);
  const std::string hint =
      near.empty() ? "known keys are " + join(known_, ", ") : "did you mean \"" + near + "\"?";
  context_.fail(key.Mark(), fmt::format("unknown key {}{}; {}", shown(key),
                                        path_.empty() ? "" : " in \"" + path_ + "\"", hint));
}

bool YamlReader::has(const std::string& key) const {
  return node_.IsMap() && get(key).IsDefined();
}

YAML::Node YamlReader::get(const std::string& key) const {
  const YAML::Node& node = node_;  // the const lookup does not insert
  return node[key];
}

YAML::Mark YamlReader::mark(const std::string& key) const {
  return has(key) ? get(key).Mark() : mark_;
}

std::string YamlReader::name_of(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

void YamlReader::fail(const std::string& key, const std::string& what) {
  context_.fail(mark(key), fmt::format("\"{}\" {}", name_of(key), what));
}

std::optional<int64_t> YamlReader::integer(const std::string& key, int64_t low, int64_t high) {
  if (!has(key)) return std::nullopt;
  const std::optional<int64_t> value = parsed<int64_t>(get(key));
  if (value && *value >= low && *value <= high) return value;
  fail(key,
       fmt::format("is {}; it must be a whole number from {} to {}", shown(get(key)), low, high));
  return std::nullopt;
}

std::optional<double> YamlReader::number(const std::string& key, double low, double high) {
  if (!has(key)) return std::nullopt;
  const std::optional<double> value = parsed<double>(get(key));
  if (value && std::isfinite(*value) && *value >= low && *value <= high) return value;
  fail(key, fmt::format("is {}; it must be a number from {} to {}", shown(get(key)), low, high));
  return std::nullopt;
}

std::optional<std::string> YamlReader::text(const std::string& key) {
  if (!has(key)) return std::nullopt;
  const YAML::Node node = get(key);
  if (node.IsScalar() && !node.Scalar().empty() && valid_utf8(node.Scalar())) return node.Scalar();
  fail(key, "is " + (node.IsScalar() ? "empty or not UTF-8" : shown(node)) + "; it must be a text");
  return std::nullopt;
}

}  // namespace kvsweep
