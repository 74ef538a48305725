#include "store/export/json_text.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace kvsweep::store {

namespace {

constexpr size_t kLineLength = 140;

std::string compact(const OrderedJson& value) {
  if (value.is_object() || value.is_array()) {
    std::string text = value.is_object() ? "{" : "[";
    bool first = true;
    for (const auto& item : value.items()) {
      if (!first) text += ", ";
      first = false;
      if (value.is_object()) text += OrderedJson(item.key()).dump() + ": ";
      text += compact(item.value());
    }
    return text + (value.is_object() ? '}' : ']');
  }
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

void write(const OrderedJson& value, size_t indent, size_t used, std::string& out) {
  const std::string line = compact(value);
  const bool scalar = !value.is_object() && !value.is_array();
  if (scalar || (indent > 0 && used + line.size() + 1 <= kLineLength)) {
    out += line;
    return;
  }
  const std::string margin(indent + 2, ' ');
  out += value.is_object() ? "{\n" : "[\n";
  size_t left = value.size();
  for (const auto& item : value.items()) {
    const std::string key =
        value.is_object() ? OrderedJson(item.key()).dump() + ": " : std::string();
    out += margin + key;
    write(item.value(), indent + 2, margin.size() + key.size(), out);
    out += --left > 0 ? ",\n" : "\n";
  }
  out += std::string(indent, ' ') + (value.is_object() ? '}' : ']');
}

}  // namespace

std::string pretty_json(const OrderedJson& value) {
  std::string text;
  write(value, 0, 0, text);
  return text + '\n';
}

Status check_keys(const Json& object, const std::vector<std::string>& known,
                  const std::string& where) {
  for (const auto& item : object.items()) {
    const std::string& key = item.key();
    if (key.rfind("x-", 0) == 0) continue;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest_word(key, known);
    return bad_input(where + ": the key \"" + key + "\" is not known" +
                     (near.empty() ? "" : " (did you mean \"" + near + "\"?)") +
                     "; keys of other tools begin with x-");
  }
  return {};
}

}  // namespace kvsweep::store
