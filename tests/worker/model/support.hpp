// Copies of the tiny models that a test may damage.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/json.hpp"

namespace kvsweep::test {

std::string tiny_model(const std::string& variant);  // in the source tree: do not change

// A copy of a tiny model in a temporary folder, removed at the end.
class ModelCopy {
 public:
  explicit ModelCopy(const std::string& variant);
  ~ModelCopy();
  const std::string& dir() const { return dir_; }
  std::string path(const std::string& file) const { return dir_ + "/" + file; }

  void edit_config(const std::function<void(Json&)>& edit) { edit_json("config.json", edit); }
  void edit_json(const std::string& file, const std::function<void(Json&)>& edit);
  // Gives header and data of a safetensors file to `edit` and writes back what it leaves.
  void edit_weights(const std::string& file,
                    const std::function<void(Json& header, std::string& data)>& edit);

 private:
  std::string dir_;
};

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

// The message that load_model fails with; "" when it loads. Also fails the test when the code is
// not bad_input.
std::string load_error(const std::string& dir);

}  // namespace kvsweep::test
