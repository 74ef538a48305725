#include "core/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "core/file.hpp"
#include "core/text.hpp"

namespace kvsweep {
namespace {

constexpr int kMaxDepth = 200;
// A parsed value takes up to fifty times the bytes of its text.
constexpr size_t kMaxFileBytes = size_t{64} << 20;
constexpr int64_t kMaxSafeInteger = int64_t{1} << 53;

// ECMAScript Number::toString (ECMA-262, 6.1.6.1.20), which RFC 8785 §3.2.2.3 demands: with the
// shortest digits s of k places and value s * 10^(n-k),
//   k <= n <= 21    digits, then n-k zeros           1e20   -> 100000000000000000000
//   0 < n <= 21     a point after n digits           123.45
//   -6 < n <= 0     "0.", -n zeros, digits           1e-6   -> 0.000001
//   otherwise       d.ddde+x with x = n-1            1e21   -> 1e+21
// std::to_chars gives the shortest digits that read back as the same double.
std::string ecmascript_number(double value) {
  if (value == 0) return "0";  // also for -0
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);

  const size_t mark = text.find('e');
  std::string digits(text.substr(0, 1));
  if (mark > 2) digits += text.substr(2, mark - 2);
  int exponent = 0;
  const size_t first = text[mark + 1] == '+' ? mark + 2 : mark + 1;
  std::from_chars(text.data() + first, text.data() + text.size(), exponent);

  const int k = static_cast<int>(digits.size());
  const int n = exponent + 1;
  std::string out = negative ? "-" : "";
  if (k <= n && n <= 21) return out + digits + std::string(static_cast<size_t>(n - k), '0');
  if (0 < n && n <= 21) {
    return out + digits.substr(0, static_cast<size_t>(n)) + "." +
           digits.substr(static_cast<size_t>(n));
  }
  if (-6 < n && n <= 0) return out + "0." + std::string(static_cast<size_t>(-n), '0') + digits;
  out += digits.substr(0, 1);
  if (k > 1) out += "." + digits.substr(1);
  return out + "e" + (exponent < 0 ? "-" : "+") + std::to_string(std::abs(exponent));
}

// Members are sorted by UTF-16 code units (RFC 8785 §3.2.3), which differs from the order of
// bytes and of code points above U+FFFF: U+1F600 (d83d de00) comes before U+FB33.
std::u16string utf16(std::string_view text) {
  std::u16string units;
  for (size_t i = 0; i < text.size();) {
    const auto at = [&](size_t k) { return static_cast<unsigned char>(text[i + k]); };
    char32_t point = at(0);
    size_t length = 1;
    if (point >= 0xf0) {
      point = (point & 7) << 18 | (at(1) & 63) << 12 | (at(2) & 63) << 6 | (at(3) & 63);
      length = 4;
    } else if (point >= 0xe0) {
      point = (point & 15) << 12 | (at(1) & 63) << 6 | (at(2) & 63);
      length = 3;
    } else if (point >= 0xc0) {
      point = (point & 31) << 6 | (at(1) & 63);
      length = 2;
    }
    if (point >= 0x10000) {
      point -= 0x10000;
      units += static_cast<char16_t>(0xd800 + (point >> 10));
      units += static_cast<char16_t>(0xdc00 + (point & 0x3ff));
    } else {
      units += static_cast<char16_t>(point);
    }
    i += length;
  }
  return units;
}

class Writer {
 public:
  Status write(const Json& value, int depth) {
    if (depth > kMaxDepth) {
      return bad_input("a JSON value is nested deeper than " + std::to_string(kMaxDepth) +
                       " levels, which canonical JSON here does not allow");
    }
    switch (value.type()) {
      case Json::value_t::null:
        out_ += "null";
        return {};
      case Json::value_t::boolean:
        out_ += value.get<bool>() ? "true" : "false";
        return {};
      case Json::value_t::string:
        return write_string(value.get_ref<const std::string&>());
      case Json::value_t::number_integer:
        return write_integer(value.get<int64_t>());
      case Json::value_t::number_unsigned:
        return write_unsigned(value.get<uint64_t>());
      case Json::value_t::number_float:
        return write_float(value.get<double>());
      case Json::value_t::array:
        return write_array(value, depth);
      case Json::value_t::object:
        return write_object(value, depth);
      case Json::value_t::binary:
      case Json::value_t::discarded:
        break;
    }
    return bad_input("a binary value cannot be written as JSON");
  }

  std::string take() { return std::move(out_); }

 private:
  // Canonical numbers are doubles: a larger integer would silently become another one.
  Status write_integer(int64_t value) {
    if (value > kMaxSafeInteger || value < -kMaxSafeInteger)
      return too_large(std::to_string(value));
    out_ += std::to_string(value);
    return {};
  }

  Status write_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(kMaxSafeInteger)) return too_large(std::to_string(value));
    out_ += std::to_string(value);
    return {};
  }

  static Status too_large(const std::string& value) {
    return bad_input("the integer " + value +
                     " lies beyond 2^53 and cannot be written exactly as a JSON number");
  }

  Status write_float(double value) {
    if (!std::isfinite(value)) {
      return bad_input("NaN or infinity cannot be written as JSON");
    }
    out_ += ecmascript_number(value);
    return {};
  }

  Status write_string(const std::string& text) {
    if (!valid_utf8(text)) return bad_input("a string that is not UTF-8 cannot be written as JSON");
    out_ += '"';
    for (const char c : text) append_escaped(c);
    out_ += '"';
    return {};
  }

  void append_escaped(char c) {
    constexpr char kDigits[] = "0123456789abcdef";
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\b':
        out_ += "\\b";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\f':
        out_ += "\\f";
        return;
      case '\r':
        out_ += "\\r";
        return;
      default:
        break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20) {
      out_ += c;
    } else {
      out_ += "\\u00";
      out_ += kDigits[byte >> 4];
      out_ += kDigits[byte & 15];
    }
  }

  Status write_array(const Json& value, int depth) {
    out_ += '[';
    bool first = true;
    for (const Json& item : value) {
      if (!first) out_ += ',';
      first = false;
      KVSWEEP_TRY(write(item, depth + 1));
    }
    out_ += ']';
    return {};
  }

  Status write_object(const Json& value, int depth) {
    std::vector<std::pair<std::u16string, Json::const_iterator>> members;
    for (auto it = value.begin(); it != value.end(); ++it) {
      if (!valid_utf8(it.key())) {
        return bad_input("a key that is not UTF-8 cannot be written as JSON");
      }
      members.emplace_back(utf16(it.key()), it);
    }
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    out_ += '{';
    bool first = true;
    for (const auto& [order, it] : members) {
      if (!first) out_ += ',';
      first = false;
      KVSWEEP_TRY(write_string(it.key()));
      out_ += ':';
      KVSWEEP_TRY(write(it.value(), depth + 1));
    }
    out_ += '}';
    return {};
  }

  std::string out_;
};

// "line 3, column 7" of a byte offset counted from 1, as nlohmann reports it.
std::string position_of(const std::string& text, size_t byte) {
  const size_t end = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(end), '\n');
  const size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const size_t column = newline == std::string::npos ? end + 1 : end - newline;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Thrown out of the parser, which itself accepts any depth: 100 MB of brackets would fill 6 GB.
struct TooDeep {};

// nlohmann keeps the last of several members with one name; two readers of such a file could
// disagree, so it is refused.
class DuplicateKeys {
 public:
  bool see(Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key &&
        !open_.back().insert(parsed.get<std::string>()).second && found_.empty()) {
      found_ = parsed.get<std::string>();
      any_ = true;
    }
    return true;
  }
  bool any() const { return any_; }
  const std::string& found() const { return found_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string found_;
  bool any_ = false;
};

}  // namespace

Result<std::string> canonical_json(const Json& value) {
  Writer writer;
  KVSWEEP_TRY(writer.write(value, 0));
  return writer.take();
}

Result<Json> parse_json(const std::string& text, const std::string& where) {
  DuplicateKeys duplicates;
  try {
    Json value = Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth > kMaxDepth) throw TooDeep();
      return duplicates.see(event, parsed);
    });
    if (duplicates.any()) {
      return bad_input(where + ": the key \"" + duplicates.found() +
                       "\" appears twice in one JSON object; keep one of them");
    }
    return value;
  } catch (const TooDeep&) {
    return bad_input(where + ": nested deeper than " + std::to_string(kMaxDepth) + " levels");
  } catch (const Json::parse_error& error) {
    const bool ended = error.byte > text.size();
    return bad_input(where + ": not valid JSON at " + position_of(text, error.byte) +
                     (ended ? " (the file ends too early)" : ""));
  } catch (const Json::exception&) {
    return bad_input(where + ": not valid JSON (a number is out of range)");
  }
}

Result<Json> read_json_file(const std::string& path) {
  KVSWEEP_ASSIGN(const std::string text, read_file(path));
  if (text.size() > kMaxFileBytes) {
    return bad_input(path + " has " + std::to_string(text.size()) +
                     " bytes; JSON files of more than " + std::to_string(kMaxFileBytes) +
                     " are not read");
  }
  return parse_json(text, path);
}

}  // namespace kvsweep
