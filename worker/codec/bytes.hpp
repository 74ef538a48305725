// Unaligned little-endian reads and writes of parameters. (The project runs on little-endian
// machines only; the assertion is where a port would begin.)
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace kvsweep::codec {

static_assert(std::endian::native == std::endian::little);

template <typename T>
inline T read_at(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

template <typename T>
inline void write_at(uint8_t* bytes, T value) {
  std::memcpy(bytes, &value, sizeof(value));
}

}  // namespace kvsweep::codec
