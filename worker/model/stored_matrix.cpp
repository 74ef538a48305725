#include "worker/model/stored_matrix.hpp"

#include <cstring>

#include "worker/model/gguf_blocks.hpp"
#include "worker/model/rows.hpp"

namespace kvsweep::model {
namespace {

int64_t bytes_of(GgmlType type, int64_t elements) {
  return elements / info(type).block_elements * info(type).block_bytes;
}

}  // namespace

void widen(GgmlType type, const uint8_t* bytes, int64_t count, float* out) {
  if (type == GgmlType::f32) {
    if (count > 0) std::memcpy(out, bytes, static_cast<size_t>(count) * sizeof(float));
  } else if (type == GgmlType::f16) {
    widen_halves(bytes, count, out);
  } else if (type == GgmlType::bf16) {
    widen_bf16(bytes, count, out);
  } else {
    dequantize(type, bytes, count, out);
  }
}

StoredMatrix::StoredMatrix(GgmlType type, int64_t rows, int64_t columns, const uint8_t* bytes)
    : type_(type),
      rows_(rows),
      columns_(columns),
      bytes_(bytes, bytes + bytes_of(type, rows * columns)) {}

void StoredMatrix::widen(int64_t first_row, int64_t rows, float* out) const {
  const uint8_t* bytes = bytes_.data() + bytes_of(type_, first_row * columns_);
  model::widen(type_, bytes, rows * columns_, out);
}

}  // namespace kvsweep::model
