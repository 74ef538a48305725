// The weight files of a Hugging Face folder: model.safetensors, or shards with an index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::model {

// A tensor kept in the type of its file, for the embedding table: rows are widened when used.
// Owns its bytes. Immutable; thread-safe.
class StoredMatrix {
 public:
  enum class Type { f32, f16, bf16 };
  StoredMatrix() = default;
  StoredMatrix(Type type, int64_t rows, int64_t columns, const uint8_t* bytes);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  void widen(int64_t first_row, int64_t rows, float* out) const;  // [rows, columns]

 private:
  Type type_ = Type::f32;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  std::vector<uint8_t> bytes_;
};

// Not thread-safe. The files stay mapped until it is destroyed.
class WeightFiles {
 public:
  // bad_input: no safetensors in the folder, a shard that is missing or not what the index says, a
  // truncated file, a header that lies about sizes, a tensor that is there twice.
  static Result<WeightFiles> open(const std::string& model_dir);
  WeightFiles(WeightFiles&&) noexcept;
  WeightFiles& operator=(WeightFiles&&) noexcept;
  ~WeightFiles();

  // What the files hold, by type as they name it ("BF16").
  struct Totals {
    int64_t tensors = 0;
    int64_t elements = 0;
    int64_t bytes = 0;
  };
  std::map<std::string, Totals> totals() const;
  std::set<std::string> paths() const;

  int64_t elements() const;  // of all tensors
  bool has(const std::string& name) const;

  // Both check presence, shape, type (F32, F16, BF16) and that all values are finite; an error
  // names file and tensor, what was found and what is expected, and mark the tensor as used.
  Status read(const std::string& name, const std::vector<int64_t>& shape, float* out);
  Result<StoredMatrix> stored(const std::string& name, int64_t rows, int64_t columns);

  // Marks a tensor as used without reading it.
  void ignore(const std::string& name);
  // Whether both tensors are there, with the same type, shape and bytes.
  bool same_bytes(const std::string& a, const std::string& b) const;

  // bad_input when a tensor was neither read nor ignored: the files hold another model than
  // config.json describes. Rotary frequencies that old checkpoints store are accepted.
  Status check_all_used() const;

 private:
  struct State;
  explicit WeightFiles(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::model
