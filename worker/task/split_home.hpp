// Which split a generated text may appear in.
#pragma once

#include <string>
#include <string_view>

#include "core/hash.hpp"

namespace kvsweep::task {

// The SHA-256 of `text` decides, so the splits of a generated task are disjoint for all seeds at
// once, and anybody can check to which one a text belongs. Returns 0..splits-1, an index into the
// splits of tasks.def: the first 8 hex digits of the hash modulo `splits`.
inline size_t home_of(std::string_view text, size_t splits) {
  return std::stoul(sha256_hex(text).substr(0, 8), nullptr, 16) % splits;
}

}  // namespace kvsweep::task
