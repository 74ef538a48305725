// Text as Python's str sees it: code points, and what str.lower(), str.split() and `re` say of them
// (Python 3.11, Unicode 14). Benchmarks whose official code is Python are scored with these.
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvsweep::task {

// Every byte that belongs to no valid sequence becomes U+FFFD.
std::u32string code_points(std::string_view utf8);
std::string utf8(std::u32string_view text);

bool is_space(char32_t c);  // str.isspace(), `\s`
bool is_digit(char32_t c);  // `\d`: decimal digits of every script
bool is_word(char32_t c);   // `\w`

// str.lower(): U+0130 becomes two characters, and a capital sigma that ends a word a final one.
std::u32string lower(std::u32string_view text);

// str.split(): the maximal runs without white space, as views into `text`.
std::vector<std::u32string_view> split_words(std::u32string_view text);

// str.split(separator): empty pieces included, so at least one.
std::vector<std::u32string_view> split_at(std::u32string_view text, char32_t separator);

// `\d+`: all maximal runs of digits.
std::vector<std::u32string_view> digit_runs(std::u32string_view text);

}  // namespace kvsweep::task
