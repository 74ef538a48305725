#include "core/wire/cbor_check.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/text.hpp"

namespace kvsweep::wire {
namespace {

// Major types of RFC 8949 §3.1.
enum Major : uint8_t { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };

class Scanner {
 public:
  explicit Scanner(std::string_view bytes) : bytes_(bytes) {}

  // Returns an empty text when all is well, else what is wrong.
  std::string_view scan() {
    const std::string_view problem = item(0);
    if (!problem.empty()) return problem;
    return at_ == bytes_.size() ? "" : "bytes follow after the end of the message";
  }

 private:
  std::string_view item(int depth) {
    if (depth > kMaxDepth) return "it is nested too deeply";
    if (at_ >= bytes_.size()) return "it ends too early";
    const auto head = static_cast<uint8_t>(bytes_[at_++]);
    const auto major = static_cast<Major>(head >> 5);
    const uint8_t detail = head & 31;
    if (major == kSimple) return simple(detail);
    uint64_t argument = 0;
    if (const auto problem = read_argument(detail, argument); !problem.empty()) return problem;
    switch (major) {
      case kUnsigned:
      case kNegative:
        // The most negative int64 has the argument 2^63 - 1.
        return major == kNegative && argument > INT64_MAX ? "a number is out of range" : "";
      case kText:
        return text(argument);
      case kArray:
        return array(argument, depth);
      case kMap:
        return map(argument, depth);
      default:
        return "it holds a kind of value that no message has";
    }
  }

  std::string_view read_argument(uint8_t detail, uint64_t& argument) {
    if (detail < 24) {
      argument = detail;
      return "";
    }
    if (detail > 27) return "it holds an item of indefinite length or a reserved head";
    return read_big_endian(size_t{1} << (detail - 24), argument);
  }

  std::string_view read_big_endian(size_t count, uint64_t& value) {
    if (bytes_.size() - at_ < count) return "it ends too early";
    value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8 | static_cast<uint8_t>(bytes_[at_++]);
    }
    return "";
  }

  std::string_view simple(uint8_t detail) {
    if (detail == 20 || detail == 21 || detail == 22) return "";  // false, true, null
    if (detail != 26 && detail != 27) return "it holds a kind of value that no message has";
    uint64_t bits = 0;
    const auto problem = read_big_endian(detail == 26 ? 4 : 8, bits);
    if (!problem.empty()) return problem;
    const double value = detail == 26 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                      : std::bit_cast<double>(bits);
    return std::isfinite(value) ? "" : "a number is not finite";
  }

  std::string_view text(uint64_t length) {
    if (length > bytes_.size() - at_) return "it ends too early";
    if (!valid_utf8(bytes_.substr(at_, length))) return "a text is not UTF-8";
    at_ += length;
    return "";
  }

  // Every element takes at least one byte, so a count beyond the rest is a lie.
  std::string_view array(uint64_t count, int depth) {
    if (count > bytes_.size() - at_) return "it ends too early";
    for (uint64_t i = 0; i < count; ++i) {
      if (const auto problem = item(depth + 1); !problem.empty()) return problem;
    }
    return "";
  }

  std::string_view map(uint64_t count, int depth) {
    if (count > (bytes_.size() - at_) / 2) return "it ends too early";
    for (uint64_t i = 0; i < count; ++i) {
      const bool is_text = at_ < bytes_.size() && static_cast<uint8_t>(bytes_[at_]) >> 5 == kText;
      if (!is_text) return "a key is not a text";
      if (const auto problem = item(depth + 1); !problem.empty()) return problem;
      if (const auto problem = item(depth + 1); !problem.empty()) return problem;
    }
    return "";
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace

Status check_cbor(std::string_view bytes) {
  const std::string_view problem = Scanner(bytes).scan();
  if (problem.empty()) return {};
  return bad_input("malformed message: " + std::string(problem));
}

}  // namespace kvsweep::wire
