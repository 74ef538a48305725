// FNV-1a, 64 bits (Fowler, Noll, Vo): a name turned into a number inside one process. Never an
// identity that is stored or shared: those are SHA-256 (core/hash.hpp).
#pragma once

#include <cstdint>
#include <string_view>

namespace kvsweep {

constexpr uint64_t fnv1a64(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace kvsweep
