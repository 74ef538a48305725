// Reads every tensor of a model in all ways there are.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/memory_file.hpp"
#include "worker/model/weight_container.hpp"
#include "worker/model/weights.hpp"

namespace kvsweep::fuzz {

// `model` is a folder or a GGUF file, `path` what errors must name, `size` the bytes of the file.
inline void read_all(const std::string& model, const std::string& path, size_t size) {
  const auto container = model::open_weights(model);
  require_named(container, path);
  auto opened = model::WeightFiles::open(model);
  require(opened.ok() == container.ok());
  if (!opened.ok()) return;
  require_named(opened->check_all_used(), path);
  int64_t elements = 0;
  for (const auto& [name, entry] : (*container)->entries()) {
    const std::vector<int64_t>& shape = entry.shape;
    const int64_t count = entry.elements();
    // 4 bits are the least that an element takes.
    require(count >= 0 && count <= 2 * static_cast<int64_t>(size));
    elements += count;
    std::vector<float> values(static_cast<size_t>(count));
    require_named(opened->read(name, shape, values.data()), path);
    require(opened->same_bytes(name, name));
    if (shape.size() != 2) continue;
    const auto stored = opened->stored(name, shape[0], shape[1]);
    require_named(stored, path);
    if (!stored.ok() || count == 0) continue;
    std::vector<float> row(static_cast<size_t>(shape[1]));
    stored->widen(shape[0] - 1, 1, row.data());
    for (size_t i = 0; i < row.size(); ++i) {
      require(row[i] == values[values.size() - row.size() + i]);
    }
  }
  require(elements == opened->elements());
  require(opened->check_all_used().ok());
}

}  // namespace kvsweep::fuzz
