// Bytes of GGUF files for tests, written from the format's description and so independent of the
// reader. Every part can be made wrong: `raw` puts bytes where a key would stand.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvsweep::test {

class GgufWriter {
 public:
  template <typename T>
  static std::string plain(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  static std::string text(std::string_view value) {
    return plain<uint64_t>(value.size()) + std::string(value);
  }

  GgufWriter& key(std::string_view name, uint32_t type, const std::string& value) {
    return raw(text(name) + plain(type) + value);
  }
  GgufWriter& number(std::string_view name, uint32_t value) { return key(name, 4, plain(value)); }
  GgufWriter& real(std::string_view name, float value) { return key(name, 6, plain(value)); }
  GgufWriter& flag(std::string_view name, bool value) {
    return key(name, 7, plain<uint8_t>(value));
  }
  GgufWriter& words(std::string_view name, std::string_view value) {
    return key(name, 8, text(value));
  }
  GgufWriter& list(std::string_view name, const std::vector<std::string>& values) {
    std::string bytes = plain<uint32_t>(8) + plain<uint64_t>(values.size());
    for (const std::string& value : values) bytes += text(value);
    return key(name, 9, bytes);
  }
  template <typename T>
  GgufWriter& list(std::string_view name, uint32_t type, const std::vector<T>& values) {
    std::string bytes = plain(type) + plain<uint64_t>(values.size());
    for (const T& value : values) bytes += plain(value);
    return key(name, 9, bytes);
  }
  GgufWriter& raw(const std::string& bytes) {
    keys_ += bytes;
    ++key_count;
    return *this;
  }

  // `shape` is row-major; `offset` and `type` are the file's. Data goes to the next aligned place.
  GgufWriter& tensor(std::string_view name, std::vector<int64_t> shape, uint32_t type,
                     const std::string& data) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\0');
    tensor_head(name, std::move(shape), type, data_.size());
    data_ += data;
    return *this;
  }
  GgufWriter& tensor(std::string_view name, std::vector<int64_t> shape,
                     const std::vector<float>& values) {
    return tensor(name, std::move(shape), 0,
                  std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  }
  GgufWriter& tensor_head(std::string_view name, std::vector<int64_t> shape, uint32_t type,
                          uint64_t offset) {
    heads_ += text(name) + plain<uint32_t>(static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) heads_ += plain<int64_t>(shape[i]);
    heads_ += plain(type) + plain(offset);
    ++tensor_count;
    return *this;
  }

  std::string bytes() const {
    std::string out = magic + plain(version) + plain(tensor_count) + plain(key_count);
    out += keys_ + heads_;
    if (!data_.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
    return out + data_;
  }

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t tensor_count = 0;
  uint64_t key_count = 0;
  uint64_t alignment = 32;  // of the bytes; say so with a key, too

 private:
  std::string keys_, heads_, data_;
};

}  // namespace kvsweep::test
