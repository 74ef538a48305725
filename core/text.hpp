// Small text helpers shared by errors, tables and specs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvsweep {

// The entry of `known` with the least edit distance to `word`, or "" when none is near
// (distance > max(2, half the word)). Case does not count; of equals the first.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool valid_utf8(std::string_view text);
// Every byte that belongs to no valid sequence becomes U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// 1234567 -> "1.18 MiB"
std::string human_bytes(double bytes);
// 75.4 s -> "1 m 15 s"
std::string human_seconds(double seconds);

}  // namespace kvsweep
