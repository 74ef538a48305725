#include "core/gguf.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/gguf_parser.hpp"
#include "core/text.hpp"

namespace kvsweep {

// Owns the descriptor only while it maps.
class GgufMapping {
 public:
  static Result<std::shared_ptr<GgufMapping>> map(const std::string& path);
  GgufMapping(const uint8_t* bytes, size_t size) : bytes_(bytes), size_(size) {}
  ~GgufMapping() { ::munmap(const_cast<uint8_t*>(bytes_), size_); }
  GgufMapping(const GgufMapping&) = delete;
  GgufMapping& operator=(const GgufMapping&) = delete;

  const uint8_t* bytes() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* bytes_;
  size_t size_;
};

namespace {

Error cannot_read(const std::string& path) {
  const int reason = errno;
  const std::string message = fmt::format("cannot read {}: {}", path, std::strerror(reason));
  return reason == ENOENT || reason == ENOTDIR ? not_found(message) : io_error(message);
}

template <typename T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// nullopt for kinds that are no whole number, and for numbers above 2^63 - 1.
std::optional<int64_t> integer_at(GgufKind kind, const uint8_t* at) {
  switch (kind) {
    case GgufKind::u8:
      return load<uint8_t>(at);
    case GgufKind::i8:
      return load<int8_t>(at);
    case GgufKind::u16:
      return load<uint16_t>(at);
    case GgufKind::i16:
      return load<int16_t>(at);
    case GgufKind::u32:
      return load<uint32_t>(at);
    case GgufKind::i32:
      return load<int32_t>(at);
    case GgufKind::i64:
      return load<int64_t>(at);
    case GgufKind::u64: {
      const uint64_t value = load<uint64_t>(at);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    case GgufKind::boolean:  // some writers give lists of yes and no as numbers, some as bools
      return load<uint8_t>(at) != 0;
    default:
      return std::nullopt;
  }
}

double shortest_decimal(float value) {
  if (!std::isfinite(value)) return value;
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  double out = value;
  std::from_chars(digits, end, out);
  return out;
}

std::optional<double> number_at(GgufKind kind, const uint8_t* at) {
  if (kind == GgufKind::f32) return shortest_decimal(load<float>(at));
  if (kind == GgufKind::f64) return load<double>(at);
  if (kind == GgufKind::boolean) return std::nullopt;
  const auto whole = integer_at(kind, at);
  if (!whole) return std::nullopt;
  return static_cast<double>(*whole);
}

std::string_view text_at(const uint8_t* at) {
  return {reinterpret_cast<const char*>(at + 8), load<uint64_t>(at)};
}

}  // namespace

Result<std::shared_ptr<GgufMapping>> GgufMapping::map(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return cannot_read(path);
  struct stat about = {};
  const bool known = ::fstat(file, &about) == 0;
  if (!known || !S_ISREG(about.st_mode) || about.st_size == 0) {
    ::close(file);
    if (!known) return cannot_read(path);
    return bad_input(path + (S_ISREG(about.st_mode) ? " is empty" : " is not a file") +
                     "; a model is a Hugging Face folder or one .gguf file");
  }
  const size_t size = static_cast<size_t>(about.st_size);
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  const Error failed = cannot_read(path);
  ::close(file);
  if (bytes == MAP_FAILED) return failed;
  return std::make_shared<GgufMapping>(static_cast<const uint8_t*>(bytes), size);
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  auto state = std::make_shared<State>();
  state->path = path;
  KVSWEEP_ASSIGN(state->mapping, GgufMapping::map(path));
  KVSWEEP_TRY(parse_gguf(state->mapping->bytes(), state->mapping->size(), *state));
  GgufFile file(std::move(state));
  KVSWEEP_ASSIGN(const int64_t parts, file.integer("split.count", 0, 1 << 16, 1));
  if (parts > 1) {
    return file.error("split.count", fmt::format("is {}: this is one part of a split model; merge "
                                                 "the parts with llama-gguf-split --merge",
                                                 parts));
  }
  return file;
}

GgufFile::GgufFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}

const std::string& GgufFile::path() const {
  return state_->path;
}

bool GgufFile::has(std::string_view key) const {
  return state_->values.count(key) != 0;
}

std::vector<std::string> GgufFile::keys(std::string_view prefix) const {
  std::vector<std::string> out;
  for (auto at = state_->values.lower_bound(prefix);
       at != state_->values.end() && at->first.starts_with(prefix); ++at) {
    out.push_back(at->first);
  }
  return out;
}

Error GgufFile::error(std::string_view key, const std::string& what) const {
  return bad_input(fmt::format("{}: {} {}", state_->path, key, what));
}

namespace {

Error missing(const GgufFile& file, std::string_view key) {
  return file.error(key, "is missing, which the model needs");
}

Error mistyped(const GgufFile& file, std::string_view key, const GgufValue& value,
               std::string_view expected) {
  return file.error(key, fmt::format("is {}{}; {} is expected", value.array ? "a list of " : "",
                                     to_string(value.kind), expected));
}

const GgufValue* value_of(const GgufFile::State& state, std::string_view key) {
  const auto found = state.values.find(key);
  return found == state.values.end() ? nullptr : &found->second;
}

}  // namespace

Result<int64_t> GgufFile::integer(std::string_view key, int64_t low, int64_t high,
                                  std::optional<int64_t> fallback) const {
  const GgufValue* value = value_of(*state_, key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return missing(*this, key);
  }
  if (value->array || integer_at(value->kind, value->data) == std::nullopt) {
    return mistyped(*this, key, *value, "a whole number below 2^63");
  }
  const int64_t number = *integer_at(value->kind, value->data);
  if (number < low || number > high) {
    return error(key, fmt::format("is {}; allowed are {} to {}", number, low, high));
  }
  return number;
}

Result<double> GgufFile::number(std::string_view key, std::optional<double> fallback) const {
  const GgufValue* value = value_of(*state_, key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return missing(*this, key);
  }
  if (value->array || !number_at(value->kind, value->data)) {
    return mistyped(*this, key, *value, "a number");
  }
  const double number = *number_at(value->kind, value->data);
  if (!std::isfinite(number)) return error(key, "is NaN or infinite");
  return number;
}

Result<bool> GgufFile::boolean(std::string_view key, std::optional<bool> fallback) const {
  const GgufValue* value = value_of(*state_, key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return missing(*this, key);
  }
  if (value->array || value->kind != GgufKind::boolean) {
    return mistyped(*this, key, *value, "a bool");
  }
  return load<uint8_t>(value->data) != 0;
}

Result<std::string> GgufFile::text(std::string_view key,
                                   std::optional<std::string> fallback) const {
  const GgufValue* value = value_of(*state_, key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return missing(*this, key);
  }
  if (value->array || value->kind != GgufKind::text) {
    return mistyped(*this, key, *value, "a text");
  }
  const std::string_view text = text_at(value->data);
  if (!valid_utf8(text)) return error(key, "is not valid UTF-8");
  return std::string(text);
}

bool GgufFile::is_array(std::string_view key) const {
  const GgufValue* value = value_of(*state_, key);
  return value != nullptr && value->array;
}

Result<std::vector<std::string>> GgufFile::texts(std::string_view key) const {
  const GgufValue* value = value_of(*state_, key);
  if (value == nullptr) return missing(*this, key);
  if (!value->array || value->kind != GgufKind::text) {
    return mistyped(*this, key, *value, "a list of texts");
  }
  std::vector<std::string> out;
  out.reserve(value->count);
  const uint8_t* at = value->data;
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::string_view text = text_at(at);
    if (!valid_utf8(text)) {
      return error(key, fmt::format("holds element {}, which is not valid UTF-8", i));
    }
    out.emplace_back(text);
    at += 8 + text.size();
  }
  return out;
}

Result<std::vector<int64_t>> GgufFile::integers(std::string_view key) const {
  const GgufValue* value = value_of(*state_, key);
  if (value == nullptr) return missing(*this, key);
  std::vector<int64_t> out;
  for (uint64_t i = 0; value->array && i < value->count; ++i) {
    const auto number = integer_at(value->kind, value->data + i * size_of(value->kind));
    if (!number) break;
    out.push_back(*number);
  }
  if (!value->array || out.size() != value->count) {
    return mistyped(*this, key, *value, "a list of whole numbers below 2^63");
  }
  return out;
}

Result<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  const GgufValue* value = value_of(*state_, key);
  if (value == nullptr) return missing(*this, key);
  std::vector<double> out;
  for (uint64_t i = 0; value->array && i < value->count; ++i) {
    const auto number = number_at(value->kind, value->data + i * size_of(value->kind));
    if (!number) break;
    if (!std::isfinite(*number)) {
      return error(key, fmt::format("holds element {}, which is NaN or infinite", i));
    }
    out.push_back(*number);
  }
  if (!value->array || out.size() != value->count) {
    return mistyped(*this, key, *value, "a list of numbers");
  }
  return out;
}

const std::vector<GgufTensor>& GgufFile::tensors() const {
  return state_->tensors;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->tensors[found->second];
}

bool is_gguf_path(const std::string& path) {
  std::error_code ignored;
  return path.ends_with(".gguf") || std::filesystem::is_regular_file(path, ignored);
}

}  // namespace kvsweep
