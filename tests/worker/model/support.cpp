#include "tests/worker/model/support.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "worker/model/model.hpp"

namespace kvsweep::test {
namespace fs = std::filesystem;

std::string tiny_model(const std::string& variant) {
  return std::string(KVSWEEP_SOURCE_DIR) + "/tests/worker/model/tiny/" + variant;
}

ModelCopy::ModelCopy(const std::string& variant) {
  std::string name = (fs::temp_directory_path() / "kvsweep-model-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  dir_ = name;
  fs::copy(tiny_model(variant), dir_, fs::copy_options::recursive);
}

ModelCopy::~ModelCopy() {
  std::error_code code;
  fs::remove_all(dir_, code);
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void ModelCopy::edit_json(const std::string& file, const std::function<void(Json&)>& edit) {
  Json json = Json::parse(read_bytes(path(file)));
  edit(json);
  write_bytes(path(file), json.dump());
}

void ModelCopy::edit_weights(const std::string& file,
                             const std::function<void(Json&, std::string&)>& edit) {
  const std::string bytes = read_bytes(path(file));
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  Json header = Json::parse(bytes.substr(8, size));
  std::string data = bytes.substr(8 + size);
  edit(header, data);
  const std::string text = header.dump();
  size = text.size();
  std::string out(reinterpret_cast<const char*>(&size), sizeof(size));
  write_bytes(path(file), out + text + data);
}

std::string load_error(const std::string& dir) {
  const auto model = model::load_model(dir, {});
  if (model.ok()) return "";
  EXPECT_EQ(model.error().code, ErrorCode::bad_input) << model.error().message;
  return model.error().message;
}

}  // namespace kvsweep::test
