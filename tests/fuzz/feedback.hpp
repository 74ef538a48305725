// Coverage of code that is not instrumented (Rust): what an input says and what came of it, as
// counters that the fuzzer reads beside those of instrumented code.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvsweep::fuzz {

__attribute__((section("__libfuzzer_extra_counters"), used)) static uint8_t counters[1 << 15];

// FNV-1a over everything but digits: messages that differ in a number are one place.
inline uint32_t hash_of(std::string_view text, uint32_t hash = 2166136261u) {
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c))) continue;
    hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  }
  return hash;
}

// An outcome, such as an error message.
inline void note(std::string_view outcome) {
  counters[hash_of(outcome) % sizeof counters] = 1;
}

// Neighbouring words of the input, which keeps the seeds and what mutations combine from them.
inline void note_words(const uint8_t* data, size_t size) {
  uint32_t before = 0;
  for (size_t i = 0; i < size;) {
    size_t end = i + 1;
    if (std::isalnum(data[i])) {
      while (end < size && end < i + 16 && std::isalnum(data[end])) ++end;
    }
    const uint32_t word = hash_of({reinterpret_cast<const char*>(data + i), end - i});
    counters[(word * 31 + before) % sizeof counters] = 1;
    before = word;
    i = end;
  }
}

}  // namespace kvsweep::fuzz
