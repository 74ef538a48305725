#include "core/gguf_parser.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "core/text.hpp"

namespace kvsweep {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they lie");

// Far above what any model has; they bound the work that a file which lies can cause.
constexpr uint64_t kMaxKeys = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 17;
constexpr uint64_t kMaxName = (1 << 16) - 1;  // bytes, the format's own bound for keys
constexpr uint64_t kMaxText = 1 << 26;        // bytes
constexpr uint64_t kMaxCount = 1 << 24;       // elements of an array
constexpr uint64_t kMaxDimension = uint64_t{1} << 40;
constexpr uint64_t kMaxElements = uint64_t{1} << 48;  // of a tensor
constexpr uint32_t kMaxRank = 4;
constexpr uint64_t kMaxAlignment = 1 << 16;

constexpr GgmlTypeInfo kTypes[] = {
    {GgmlType::f32, "F32", 1, 4},       {GgmlType::f16, "F16", 1, 2},
    {GgmlType::q4_0, "Q4_0", 32, 18},   {GgmlType::q4_1, "Q4_1", 32, 20},
    {GgmlType::q5_0, "Q5_0", 32, 22},   {GgmlType::q5_1, "Q5_1", 32, 24},
    {GgmlType::q8_0, "Q8_0", 32, 34},   {GgmlType::q4_k, "Q4_K", 256, 144},
    {GgmlType::q5_k, "Q5_K", 256, 176}, {GgmlType::q6_k, "Q6_K", 256, 210},
    {GgmlType::bf16, "BF16", 1, 2},
};

// Types of llama.cpp that are not read here, for the message.
struct OtherType {
  uint32_t number;
  std::string_view name;
};
constexpr OtherType kOtherTypes[] = {
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
    {34, "TQ1_0"},   {35, "TQ2_0"}, {39, "MXFP4"},  {40, "NVFP4"}, {41, "Q1_0"},
};

const GgmlTypeInfo* find_type(uint32_t number) {
  for (const GgmlTypeInfo& type : kTypes) {
    if (static_cast<uint32_t>(type.type) == number) return &type;
  }
  return nullptr;
}

std::string describe_type(uint32_t number) {
  for (const OtherType& type : kOtherTypes) {
    if (type.number == number) return fmt::format("{} ({})", type.name, number);
  }
  return fmt::format("number {}", number);
}

std::string supported_types() {
  std::vector<std::string> names;
  for (const GgmlTypeInfo& type : kTypes) names.emplace_back(type.name);
  return join(names, ", ");
}

class Parser {
 public:
  Parser(const uint8_t* bytes, size_t size, GgufFile::State& state)
      : bytes_(bytes), size_(size), state_(state) {}

  Status parse();

 private:
  struct TensorHead {
    const GgmlTypeInfo* type = nullptr;
    uint64_t offset = 0;
  };

  Error wrong(const std::string& what) const { return bad_input(state_.path + ": " + what); }
  Error ends(const std::string& what) const {
    return wrong(
        fmt::format("{} ends beyond the file, which has {} bytes; it is damaged or cut "
                    "short, so fetch it again",
                    what, size_));
  }

  uint64_t left() const { return size_ - at_; }
  // The next value of a plain type; `what` names it when the file ends before.
  template <typename T>
  Result<T> next(const std::string& what);
  Result<std::string_view> next_text(uint64_t most, const std::string& what);
  Result<std::string> next_name(const std::string& what);

  Result<std::pair<uint64_t, uint64_t>> read_head();  // tensors, keys
  Status read_value(const std::string& key);
  Status read_array(const std::string& what, GgufValue& value);
  Result<GgufKind> next_kind(const std::string& what);
  Status read_tensor(uint64_t index);
  Result<std::vector<int64_t>> next_shape(const std::string& what);
  Status place_tensors();
  Status check_overlap() const;
  Result<uint64_t> alignment() const;

  const uint8_t* bytes_;
  size_t size_;
  GgufFile::State& state_;
  size_t at_ = 0;
  std::vector<uint64_t> offsets_;  // of the tensors, from the start of the data
};

template <typename T>
Result<T> Parser::next(const std::string& what) {
  if (left() < sizeof(T)) return ends(what);
  T value;
  std::memcpy(&value, bytes_ + at_, sizeof(T));
  at_ += sizeof(T);
  return value;
}

Result<std::string_view> Parser::next_text(uint64_t most, const std::string& what) {
  KVSWEEP_ASSIGN(const uint64_t length, next<uint64_t>(what));
  if (length > most) {
    return wrong(fmt::format("{} has {} bytes; at most {} are allowed", what, length, most));
  }
  if (length > left()) return ends(what);
  const std::string_view text(reinterpret_cast<const char*>(bytes_ + at_), length);
  at_ += length;
  return text;
}

// A key or the name of a tensor: text that can be shown.
Result<std::string> Parser::next_name(const std::string& what) {
  KVSWEEP_ASSIGN(const std::string_view name, next_text(kMaxName, what));
  if (name.empty() || !valid_utf8(name)) {
    return wrong(fmt::format("{} is {}", what, name.empty() ? "empty" : "not valid UTF-8"));
  }
  return std::string(name);
}

Result<GgufKind> Parser::next_kind(const std::string& what) {
  KVSWEEP_ASSIGN(const uint32_t kind, next<uint32_t>(what));
  if (kind > static_cast<uint32_t>(GgufKind::f64)) {
    return wrong(fmt::format("{} has type number {}; allowed are 0 to 12", what, kind));
  }
  return static_cast<GgufKind>(kind);
}

Result<std::pair<uint64_t, uint64_t>> Parser::read_head() {
  if (size_ < 4 || std::memcmp(bytes_, "GGUF", 4) != 0) {
    return wrong(
        "does not begin with \"GGUF\"; a model is a Hugging Face folder or one .gguf file");
  }
  at_ = 4;
  KVSWEEP_ASSIGN(const uint32_t version, next<uint32_t>("the version"));
  if (version != 2 && version != 3) {
    const bool swapped = (version & 0xffffu) == 0 && version != 0;
    return wrong(swapped
                     ? std::string("is a big-endian GGUF file; only little-endian ones are read")
                     : fmt::format("has GGUF version {}; versions 2 and 3 are read", version));
  }
  KVSWEEP_ASSIGN(const uint64_t tensors, next<uint64_t>("the number of tensors"));
  KVSWEEP_ASSIGN(const uint64_t keys, next<uint64_t>("the number of keys"));
  if (tensors > kMaxTensors) {
    return wrong(fmt::format("names {} tensors; at most {} are allowed", tensors, kMaxTensors));
  }
  if (keys > kMaxKeys) {
    return wrong(fmt::format("names {} keys; at most {} are allowed", keys, kMaxKeys));
  }
  return std::pair(tensors, keys);
}

Status Parser::read_array(const std::string& what, GgufValue& value) {
  value.array = true;
  KVSWEEP_ASSIGN(value.kind, next_kind("an element of " + what));
  KVSWEEP_ASSIGN(value.count, next<uint64_t>("the length of " + what));
  if (value.kind == GgufKind::array)
    return wrong(what + " is an array of arrays, which no model has");
  if (value.count > kMaxCount) {
    return wrong(
        fmt::format("{} has {} elements; at most {} are allowed", what, value.count, kMaxCount));
  }
  value.data = bytes_ + at_;
  if (value.kind == GgufKind::text) {
    for (uint64_t i = 0; i < value.count; ++i) {
      KVSWEEP_TRY(next_text(kMaxText, fmt::format("element {} of {}", i, what)));
    }
    return {};
  }
  const uint64_t bytes = value.count * size_of(value.kind);
  if (bytes > left()) return ends(what);
  at_ += bytes;
  return {};
}

Status Parser::read_value(const std::string& key) {
  const std::string what = "key " + key;
  GgufValue value;
  KVSWEEP_ASSIGN(value.kind, next_kind(what));
  value.data = bytes_ + at_;
  if (value.kind == GgufKind::array) {
    KVSWEEP_TRY(read_array(what, value));
  } else if (value.kind == GgufKind::text) {
    KVSWEEP_TRY(next_text(kMaxText, what));
  } else {
    const size_t bytes = size_of(value.kind);
    if (bytes > left()) return ends(what);
    at_ += bytes;
  }
  if (!state_.values.emplace(key, value).second) return wrong(what + " is there twice");
  return {};
}

Result<std::vector<int64_t>> Parser::next_shape(const std::string& what) {
  KVSWEEP_ASSIGN(const uint32_t rank, next<uint32_t>("the number of dimensions of " + what));
  if (rank < 1 || rank > kMaxRank) {
    return wrong(fmt::format("{} has {} dimensions; allowed are 1 to {}", what, rank, kMaxRank));
  }
  std::vector<int64_t> shape(rank);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    KVSWEEP_ASSIGN(const uint64_t size, next<uint64_t>("the shape of " + what));
    if (size < 1 || size > kMaxDimension || elements > kMaxElements / size) {
      return wrong(
          fmt::format("{} has a dimension of {}; it must be at least 1 and the tensor "
                      "hold at most 2^48 elements",
                      what, size));
    }
    elements *= size;
    shape[rank - 1 - i] = static_cast<int64_t>(size);
  }
  return shape;
}

Status Parser::read_tensor(uint64_t index) {
  GgufTensor tensor;
  KVSWEEP_ASSIGN(tensor.name, next_name(fmt::format("the name of tensor {}", index)));
  const std::string what = "tensor " + tensor.name;
  KVSWEEP_ASSIGN(tensor.shape, next_shape(what));
  KVSWEEP_ASSIGN(const uint32_t number, next<uint32_t>("the type of " + what));
  KVSWEEP_ASSIGN(const uint64_t offset, next<uint64_t>("the offset of " + what));
  const GgmlTypeInfo* type = find_type(number);
  if (type == nullptr) {
    return wrong(fmt::format("{} has type {}; types that can be read are {}", what,
                             describe_type(number), supported_types()));
  }
  if (tensor.shape.back() % type->block_elements != 0) {
    return wrong(
        fmt::format("{} has rows of {} elements; with type {} they must be a multiple "
                    "of {}",
                    what, tensor.shape.back(), type->name, type->block_elements));
  }
  tensor.type = type->type;
  tensor.elements = 1;
  for (const int64_t size : tensor.shape) tensor.elements *= size;
  tensor.bytes = static_cast<uint64_t>(tensor.elements / type->block_elements) *
                 static_cast<uint64_t>(type->block_bytes);
  if (!state_.by_name.emplace(tensor.name, state_.tensors.size()).second) {
    return wrong(what + " is there twice");
  }
  offsets_.push_back(offset);
  state_.tensors.push_back(std::move(tensor));
  return {};
}

Result<uint64_t> Parser::alignment() const {
  const auto found = state_.values.find("general.alignment");
  if (found == state_.values.end()) return uint64_t{32};
  const GgufValue& value = found->second;
  uint32_t alignment = 0;
  if (!value.array && value.kind == GgufKind::u32) std::memcpy(&alignment, value.data, 4);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    return wrong(
        fmt::format("key general.alignment is {}; it must be a power of two up to {}, of "
                    "type u32",
                    alignment, kMaxAlignment));
  }
  return uint64_t{alignment};
}

Status Parser::place_tensors() {
  KVSWEEP_ASSIGN(const uint64_t step, alignment());
  const uint64_t start = (at_ + step - 1) / step * step;
  for (size_t i = 0; i < state_.tensors.size(); ++i) {
    GgufTensor& tensor = state_.tensors[i];
    const std::string what = "tensor " + tensor.name;
    if (offsets_[i] % step != 0) {
      return wrong(fmt::format("{} begins at {}, which is not a multiple of the alignment {}", what,
                               offsets_[i], step));
    }
    if (start > size_ || offsets_[i] > size_ - start ||
        tensor.bytes > size_ - start - offsets_[i]) {
      return ends(what);
    }
    tensor.data = bytes_ + start + offsets_[i];
  }
  return check_overlap();
}

Status Parser::check_overlap() const {
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : state_.tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const GgufTensor* a, const GgufTensor* b) { return a->data < b->data; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->data + order[i - 1]->bytes > order[i]->data) {
      return wrong(
          fmt::format("tensor {} lies over tensor {}", order[i]->name, order[i - 1]->name));
    }
  }
  return {};
}

Status Parser::parse() {
  KVSWEEP_ASSIGN(const auto counts, read_head());
  for (uint64_t i = 0; i < counts.second; ++i) {
    KVSWEEP_ASSIGN(const std::string key, next_name(fmt::format("the name of key {}", i)));
    KVSWEEP_TRY(read_value(key));
  }
  for (uint64_t i = 0; i < counts.first; ++i) KVSWEEP_TRY(read_tensor(i));
  return place_tensors();
}

}  // namespace

const GgmlTypeInfo& info(GgmlType type) {
  return *find_type(static_cast<uint32_t>(type));
}

std::string_view to_string(GgufKind kind) {
  constexpr std::string_view kNames[] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "text", "array", "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(kind)];
}

size_t size_of(GgufKind kind) {
  constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<size_t>(kind)];
}

Status parse_gguf(const uint8_t* bytes, size_t size, GgufFile::State& state) {
  return Parser(bytes, size, state).parse();
}

}  // namespace kvsweep
