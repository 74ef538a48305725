// GGUF: the one-file container of llama.cpp. Header, metadata and tensor list, checked against the
// size of the file before anything is handed out.
//
// Layout (little-endian): "GGUF", version u32, tensors u64, keys u64; then the keys (name, type
// u32, value), then the tensors (name, dimensions u32, each u64 with the fastest first, type u32,
// offset u64), then, aligned to general.alignment (32 unless given), the data that the offsets
// count in. A text is a u64 length and its bytes; an array is an element type u32, a count u64, the
// elements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace kvsweep {

// How elements are stored. Numbers are those of the file format.
enum class GgmlType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30,
};

struct GgmlTypeInfo {
  GgmlType type;
  std::string_view name;   // "Q4_K"
  int block_elements = 1;  // that share their parameters
  int block_bytes = 0;
};
const GgmlTypeInfo& info(GgmlType type);

struct GgufTensor {
  std::string name;
  GgmlType type = GgmlType::f32;
  std::vector<int64_t> shape;     // row-major: the file's order reversed
  const uint8_t* data = nullptr;  // into the file
  int64_t elements = 0;
  uint64_t bytes = 0;
};

// An open file, mapped. Copies share it. Immutable; thread-safe. Values are decoded when asked for.
// Whoever cuts the file short while it is open ends the process, as with every mapped file.
class GgufFile {
 public:
  struct State;  // core/gguf_parser.hpp

  // Versions 2 and 3. bad_input names file and field: not GGUF, big-endian, another version, one
  // part of a split model, a size, count, offset or text beyond the end of the file, tensors that
  // overlap or are misaligned, a type that cannot be read, a key or tensor that is there twice, an
  // array of arrays. not_found and io when the file cannot be opened.
  static Result<GgufFile> open(const std::string& path);

  const std::string& path() const;
  bool has(std::string_view key) const;
  std::vector<std::string> keys(std::string_view prefix) const;  // that begin so, sorted

  // Error (bad_input) names file and key: absent without fallback, of another kind, out of range.
  Result<int64_t> integer(std::string_view key, int64_t low, int64_t high,
                          std::optional<int64_t> fallback = {}) const;
  // A finite number. A 32-bit value becomes the shortest decimal that reads back as it, which is
  // what its author wrote: 1e-05, not 9.99999974e-06.
  Result<double> number(std::string_view key, std::optional<double> fallback = {}) const;
  Result<bool> boolean(std::string_view key, std::optional<bool> fallback = {}) const;
  // Valid UTF-8.
  Result<std::string> text(std::string_view key, std::optional<std::string> fallback = {}) const;
  Result<std::vector<std::string>> texts(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;
  bool is_array(std::string_view key) const;

  // bad_input: "<path>: <key> <what>".
  Error error(std::string_view key, const std::string& what) const;

  const std::vector<GgufTensor>& tensors() const;
  const GgufTensor* find(std::string_view name) const;  // nullptr when absent

 private:
  explicit GgufFile(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

// Whether a model is given as a GGUF file: a name that ends in .gguf, or a file of any name.
bool is_gguf_path(const std::string& path);

}  // namespace kvsweep
