#include "worker/model/weights.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "core/json.hpp"
#include "worker/model/rows.hpp"
#include "worker/rust/kvsweep_rs.h"

namespace kvsweep::model {
namespace fs = std::filesystem;
namespace {

at::ScalarType scalar_type(StoredMatrix::Type type) {
  if (type == StoredMatrix::Type::f16) return at::kHalf;
  return type == StoredMatrix::Type::bf16 ? at::kBFloat16 : at::kFloat;
}

int64_t bytes_of(StoredMatrix::Type type) {
  return type == StoredMatrix::Type::f32 ? 4 : 2;
}

void widen_into(StoredMatrix::Type type, const uint8_t* bytes, int64_t count, float* out) {
  if (type == StoredMatrix::Type::f32) {
    std::memcpy(out, bytes, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  at::from_blob(out, {count}, at::kFloat)
      .copy_(at::from_blob(const_cast<uint8_t*>(bytes), {count}, scalar_type(type)));
}

struct FileCloser {
  void operator()(KvsSafetensors* file) const { kvs_safetensors_free(file); }
};
using File = std::unique_ptr<KvsSafetensors, FileCloser>;

struct Entry {
  KvsTensor tensor;
  std::string path;
  bool used = false;
};

bool known_harmless(const std::string& name) {
  const std::string suffix = "rotary_emb.inv_freq";
  return name.size() >= suffix.size() &&
         name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
}

std::string describe(const KvsTensor& tensor) {
  const std::vector<uint64_t> shape(tensor.shape, tensor.shape + tensor.rank);
  return fmt::format("{} [{}]", tensor.dtype, fmt::join(shape, ", "));
}

}  // namespace

StoredMatrix::StoredMatrix(Type type, int64_t rows, int64_t columns, const uint8_t* bytes)
    : type_(type),
      rows_(rows),
      columns_(columns),
      bytes_(bytes, bytes + rows * columns * bytes_of(type)) {}

void StoredMatrix::widen(int64_t first_row, int64_t rows, float* out) const {
  const int64_t row_bytes = columns_ * bytes_of(type_);
  widen_into(type_, bytes_.data() + first_row * row_bytes, rows * columns_, out);
}

struct WeightFiles::State {
  std::vector<File> files;
  std::map<std::string, Entry> entries;

  Status add_file(const std::string& path);
  Status add_shards(const std::string& dir, const std::string& index_path);
  Result<Entry*> find(const std::string& name, const std::vector<int64_t>& shape);
};

Status WeightFiles::State::add_file(const std::string& path) {
  char* error = nullptr;
  File file(kvs_safetensors_open(path.c_str(), &error));
  if (!file) {
    const std::string reason = error != nullptr ? error : "unknown error";
    kvs_string_free(error);
    if (reason.find(path) != std::string::npos) return bad_input(reason);
    return bad_input(fmt::format("{}: {}", path, reason));
  }
  const size_t count = kvs_safetensors_count(file.get());
  for (size_t i = 0; i < count; ++i) {
    Entry entry;
    entry.path = path;
    if (kvs_safetensors_tensor(file.get(), i, &entry.tensor) != 0) {
      return bad_input(fmt::format("{}: tensor {} of {} cannot be read", path, i, count));
    }
    const auto [at, added] = entries.emplace(entry.tensor.name, entry);
    if (!added) {
      return bad_input(fmt::format("{}: tensor {} is also in {}; remove one of the files", path,
                                   at->first, at->second.path));
    }
  }
  files.push_back(std::move(file));
  return {};
}

Status WeightFiles::State::add_shards(const std::string& dir, const std::string& index_path) {
  KVSWEEP_ASSIGN(const Json index, read_json_file(index_path));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty()) {
    return bad_input(index_path + ": weight_map is missing; it must name the shard of each tensor");
  }
  std::set<std::string> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string() ||
        fs::path(shard.get<std::string>()).filename() != shard.get<std::string>()) {
      return bad_input(
          fmt::format("{}: weight_map gives {} for {}; a file name in the same folder "
                      "is expected",
                      index_path, shard.dump(), name));
    }
    shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards) {
    const std::string path = (fs::path(dir) / shard).string();
    if (std::error_code code; !fs::exists(path, code)) {
      return bad_input(
          fmt::format("{} is missing, which {} names; download the model again", path, index_path));
    }
    KVSWEEP_TRY(add_file(path));
  }
  for (const auto& [name, shard] : map->items()) {
    const auto found = entries.find(name);
    const std::string path = (fs::path(dir) / shard.get<std::string>()).string();
    if (found == entries.end() || found->second.path != path) {
      return bad_input(fmt::format("{}: tensor {} is not in {}, where the index places it",
                                   index_path, name, path));
    }
  }
  return {};
}

Result<Entry*> WeightFiles::State::find(const std::string& name,
                                        const std::vector<int64_t>& shape) {
  const auto found = entries.find(name);
  if (found == entries.end()) {
    return bad_input(fmt::format("tensor {} [{}], which config.json calls for, is not in {}", name,
                                 fmt::join(shape, ", "), entries.begin()->second.path));
  }
  Entry& entry = found->second;
  const KvsTensor& tensor = entry.tensor;
  bool fits = tensor.rank == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = tensor.shape[i] == static_cast<uint64_t>(shape[i]);
  }
  if (!fits) {
    return bad_input(fmt::format("{}: tensor {} is {}, but config.json calls for [{}]", entry.path,
                                 name, describe(tensor), fmt::join(shape, ", ")));
  }
  entry.used = true;
  return &entry;
}

namespace {

Result<StoredMatrix::Type> type_of(const Entry& entry, const std::string& name) {
  const std::string dtype = entry.tensor.dtype;
  if (dtype == "F32") return StoredMatrix::Type::f32;
  if (dtype == "F16") return StoredMatrix::Type::f16;
  if (dtype == "BF16") return StoredMatrix::Type::bf16;
  return bad_input(fmt::format("{}: tensor {} is {}; supported types are F32, F16 and BF16",
                               entry.path, name, describe(entry.tensor)));
}

Error not_finite(const Entry& entry, const std::string& name) {
  return bad_input(
      fmt::format("{}: tensor {} holds NaN or infinity; the file is damaged", entry.path, name));
}

}  // namespace

WeightFiles::WeightFiles(std::unique_ptr<State> state) : state_(std::move(state)) {}
WeightFiles::WeightFiles(WeightFiles&&) noexcept = default;
WeightFiles& WeightFiles::operator=(WeightFiles&&) noexcept = default;
WeightFiles::~WeightFiles() = default;

Result<WeightFiles> WeightFiles::open(const std::string& model_dir) {
  auto state = std::make_unique<State>();
  const std::string single = (fs::path(model_dir) / "model.safetensors").string();
  const std::string index = single + ".index.json";
  std::error_code code;
  if (fs::exists(single, code)) {
    KVSWEEP_TRY(state->add_file(single));
  } else if (fs::exists(index, code)) {
    KVSWEEP_TRY(state->add_shards(model_dir, index));
  } else {
    return bad_input(
        fmt::format("{} has neither model.safetensors nor "
                    "model.safetensors.index.json; weights are read from these only",
                    model_dir));
  }
  if (state->entries.empty()) return bad_input(single + " holds no tensors");
  return WeightFiles(std::move(state));
}

std::map<std::string, WeightFiles::Totals> WeightFiles::totals() const {
  std::map<std::string, Totals> totals;
  for (const auto& [name, entry] : state_->entries) {
    int64_t count = 1;
    for (size_t i = 0; i < entry.tensor.rank; ++i) {
      count *= static_cast<int64_t>(entry.tensor.shape[i]);
    }
    Totals& type = totals[entry.tensor.dtype];
    type.tensors += 1;
    type.elements += count;
    type.bytes += static_cast<int64_t>(entry.tensor.bytes);
  }
  return totals;
}

std::set<std::string> WeightFiles::paths() const {
  std::set<std::string> paths;
  for (const auto& [name, entry] : state_->entries) paths.insert(entry.path);
  return paths;
}

int64_t WeightFiles::elements() const {
  int64_t sum = 0;
  for (const auto& [name, entry] : state_->entries) {
    int64_t count = 1;
    for (size_t i = 0; i < entry.tensor.rank; ++i) {
      count *= static_cast<int64_t>(entry.tensor.shape[i]);
    }
    sum += count;
  }
  return sum;
}

bool WeightFiles::has(const std::string& name) const {
  return state_->entries.count(name) != 0;
}

Status WeightFiles::read(const std::string& name, const std::vector<int64_t>& shape, float* out) {
  KVSWEEP_ASSIGN(Entry * entry, state_->find(name, shape));
  KVSWEEP_ASSIGN(const StoredMatrix::Type type, type_of(*entry, name));
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  widen_into(type, entry->tensor.data, count, out);
  if (!all_finite(out, count)) return not_finite(*entry, name);
  return {};
}

Result<StoredMatrix> WeightFiles::stored(const std::string& name, int64_t rows, int64_t columns) {
  KVSWEEP_ASSIGN(Entry * entry, state_->find(name, {rows, columns}));
  KVSWEEP_ASSIGN(const StoredMatrix::Type type, type_of(*entry, name));
  StoredMatrix matrix(type, rows, columns, entry->tensor.data);
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows; ++i) {
    matrix.widen(i, 1, row.data());
    if (!all_finite(row.data(), columns)) return not_finite(*entry, name);
  }
  return matrix;
}

void WeightFiles::ignore(const std::string& name) {
  const auto found = state_->entries.find(name);
  if (found != state_->entries.end()) found->second.used = true;
}

bool WeightFiles::same_bytes(const std::string& a, const std::string& b) const {
  const auto first = state_->entries.find(a);
  const auto second = state_->entries.find(b);
  if (first == state_->entries.end() || second == state_->entries.end()) return false;
  const KvsTensor& x = first->second.tensor;
  const KvsTensor& y = second->second.tensor;
  return describe(x) == describe(y) && x.bytes == y.bytes &&
         std::memcmp(x.data, y.data, x.bytes) == 0;
}

Status WeightFiles::check_all_used() const {
  for (const auto& [name, entry] : state_->entries) {
    if (entry.used || known_harmless(name)) continue;
    return bad_input(
        fmt::format("{}: tensor {} {} has no place in the model that config.json "
                    "describes; the two do not belong together",
                    entry.path, name, describe(entry.tensor)));
  }
  return {};
}

}  // namespace kvsweep::model
