// A container of tensors: what stands behind WeightFiles. Internal to worker/model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/gguf.hpp"
#include "core/result.hpp"

namespace kvsweep::model {

// One tensor under the name that Hugging Face gives it.
struct WeightEntry {
  std::string path;               // of its file
  std::string dtype;              // as the container names it
  std::vector<int64_t> shape;     // row-major
  std::optional<GgmlType> type;   // how `data` lies; nullopt: `read` is the only way, if any
  const uint8_t* data = nullptr;  // not always aligned
  uint64_t bytes = 0;

  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
  }
};

// Immutable after opening; the data stay mapped until it is destroyed.
class WeightContainer {
 public:
  using Entries = std::map<std::string, WeightEntry>;
  virtual ~WeightContainer() = default;
  virtual const Entries& entries() const = 0;
  // All elements in fp32. `entry` is one of entries(). bad_input for a dtype that has no numbers.
  virtual Status read(const Entries::value_type& entry, float* out) const = 0;
  // What the tensors must fit, for messages: "config.json".
  virtual std::string described_by() const = 0;
};

// "F16 [2, 3]"
std::string describe(const WeightEntry& entry);

// model.safetensors of a folder, or its shards; see WeightFiles::open.
Result<std::unique_ptr<WeightContainer>> open_safetensors(const std::string& model_dir);

// One GGUF file. Its tensors appear under the names, and with the values, that they had before
// llama.cpp converted them (gguf_names.hpp).
Result<std::unique_ptr<WeightContainer>> open_gguf(const std::string& path);

// Of a folder, with its quantized layers as matrices, or of a GGUF file.
Result<std::unique_ptr<WeightContainer>> open_weights(const std::string& model);

}  // namespace kvsweep::model
