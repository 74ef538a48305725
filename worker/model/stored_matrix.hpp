// Numbers in the type of their file, widened to fp32 when they are used.
#pragma once

#include <cstdint>
#include <vector>

#include "core/gguf.hpp"

namespace kvsweep::model {

// `count` elements, whole blocks. F16 and BF16 with the vector instructions of the machine.
void widen(GgmlType type, const uint8_t* bytes, int64_t count, float* out);

// A matrix kept in the type of its file, for the embedding table. Owns its bytes. Immutable;
// thread-safe.
class StoredMatrix {
 public:
  StoredMatrix() = default;
  // Rows are whole blocks of `type`.
  StoredMatrix(GgmlType type, int64_t rows, int64_t columns, const uint8_t* bytes);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  void widen(int64_t first_row, int64_t rows, float* out) const;  // [rows, columns]

 private:
  GgmlType type_ = GgmlType::f32;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace kvsweep::model
