// Files for the tests of worker/text.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/json.hpp"

namespace kvsweep::text {

// KVSWEEP_SOURCE_DIR is set by CMake.
inline std::string data_path(const std::string& name) {
  return std::string(KVSWEEP_SOURCE_DIR) + "/tests/worker/text/data/" + name;
}
inline std::string smollm2_path() {
  return std::string(KVSWEEP_SOURCE_DIR) + "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

// A golden that make_goldens.py wrote; stops the test when it cannot be read.
inline Json golden(const std::string& name) {
  auto json = read_json_file(data_path(name));
  if (!json.ok()) throw std::runtime_error(json.error().message);
  return std::move(json).value();
}

// An empty folder that is removed at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "kvsweep-text-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // Returns the path of the file.
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = path_ + "/" + name;
    // A new file: ext4 writes a file that was cut to zero to the disk at once, which is slow.
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  void copy_tiny() const {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      std::filesystem::copy_file(data_path("tiny/") + name, path_ + "/" + name,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }

 private:
  std::string path_;
};

}  // namespace kvsweep::text
