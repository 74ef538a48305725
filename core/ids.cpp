#include "core/ids.hpp"

#include <sys/random.h>

#include <array>
#include <stdexcept>

namespace kvsweep {

std::string uuid_v7(int64_t utc_ms) {
  std::array<unsigned char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("the system's random source gave too few bytes");
  }
  const uint64_t time = static_cast<uint64_t>(utc_ms);
  for (int i = 0; i < 6; ++i) bytes[i] = static_cast<unsigned char>(time >> (40 - 8 * i));
  bytes[6] = static_cast<unsigned char>(0x70 | (bytes[6] & 0x0f));  // version 7
  bytes[8] = static_cast<unsigned char>(0x80 | (bytes[8] & 0x3f));  // variant 10

  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace kvsweep
