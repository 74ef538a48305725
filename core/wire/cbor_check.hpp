// A look at CBOR bytes before a decoder gets them: the decoder recurses per level and trusts
// lengths, so depth and lengths are checked here without allocating anything.
#pragma once

#include <string_view>

#include "core/result.hpp"

namespace kvsweep::wire {

inline constexpr int kMaxDepth = 12;

// Accepts one well-formed item (RFC 8949) that fills `bytes` exactly, made of integers, text,
// arrays, maps with text keys, booleans, null and finite floats of 32 or 64 bits, all of definite
// length and at most kMaxDepth levels deep. O(bytes), never throws.
Status check_cbor(std::string_view bytes);

}  // namespace kvsweep::wire
