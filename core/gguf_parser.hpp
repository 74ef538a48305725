// Reading of a GGUF file's head into a table. Internal to core/gguf.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf.hpp"

namespace kvsweep {

enum class GgufKind : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  text = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
std::string_view to_string(GgufKind kind);
size_t size_of(GgufKind kind);  // bytes; 0 for text and array

// Where a value lies. The bounds of all of it, also of every text of an array, are checked.
struct GgufValue {
  GgufKind kind = GgufKind::u8;  // of the elements, for an array
  bool array = false;
  uint64_t count = 1;
  const uint8_t* data = nullptr;
};

class GgufMapping;

struct GgufFile::State {
  std::string path;
  std::shared_ptr<GgufMapping> mapping;
  std::map<std::string, GgufValue, std::less<>> values;
  std::vector<GgufTensor> tensors;
  std::map<std::string, size_t, std::less<>> by_name;  // index into tensors
};

// Parses `size` bytes at `bytes`, which outlive `state`, into it; state.path names the file.
Status parse_gguf(const uint8_t* bytes, size_t size, GgufFile::State& state);

}  // namespace kvsweep
