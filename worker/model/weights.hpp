// The weights of a model by the names that Hugging Face gives them, whatever file they lie in: a
// folder's model.safetensors, its shards with an index, or one GGUF file. A linear layer that AWQ
// or GPTQ stored in 4 bits is served as the matrix it stands for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "worker/model/stored_matrix.hpp"

namespace kvsweep::model {

// Not thread-safe. The files stay mapped until it is destroyed.
class WeightFiles {
 public:
  // `model` is a folder or a GGUF file. bad_input: no safetensors in the folder, a shard that is
  // missing or not what the index says, a truncated file, a header that lies about sizes, a tensor
  // that is there twice.
  static Result<WeightFiles> open(const std::string& model);
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

  // Both check presence, shape, type (F32, F16, BF16; of GGUF also blocks) and that all values are
  // finite, and mark the tensor as used; an error names file and tensor, what was found and what is
  // expected.
  Status read(const std::string& name, const std::vector<int64_t>& shape, float* out);
  Result<StoredMatrix> stored(const std::string& name, int64_t rows, int64_t columns);

  // Marks a tensor as used without reading it.
  void ignore(const std::string& name);
  // Whether both tensors are there, with the same type, shape and bytes.
  bool same_bytes(const std::string& a, const std::string& b) const;

  // bad_input when a tensor was neither read nor ignored: the files hold another model than the
  // configuration describes. Rotary frequencies that old checkpoints store, and
  // biases of zeros, are accepted.
  Status check_all_used() const;

 private:
  struct State;
  explicit WeightFiles(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep::model
