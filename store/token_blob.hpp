// Token ids as a compact blob. Internal to store/.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::store {

// LEB128 varints, one per id: 7 bits a byte, low bits first, the high bit says that more follow.
// An id below 2^14 takes two bytes, below 2^21 three. Example: 5, 300 -> 05 AC 02.
// Ids are not negative (a negative one is a broken invariant of the caller: 5 bytes as uint32).
std::vector<uint8_t> pack_tokens(const std::vector<int32_t>& tokens);

// Error (bad_input): cut in the middle of an id, or an id beyond 32 bits.
Result<std::vector<int32_t>> unpack_tokens(std::string_view blob);

}  // namespace kvsweep::store
