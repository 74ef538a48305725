#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "core/json.hpp"
#include "worker/model/stored_matrix.hpp"
#include "worker/model/weight_container.hpp"
#include "worker/rust/kvsweep_rs.h"

namespace kvsweep::model {
namespace fs = std::filesystem;
namespace {

struct FileCloser {
  void operator()(KvsSafetensors* file) const { kvs_safetensors_free(file); }
};
using File = std::unique_ptr<KvsSafetensors, FileCloser>;

std::optional<GgmlType> type_of(const std::string& dtype) {
  if (dtype == "F32") return GgmlType::f32;
  if (dtype == "F16") return GgmlType::f16;
  if (dtype == "BF16") return GgmlType::bf16;
  return std::nullopt;
}

WeightEntry entry_of(const KvsTensor& tensor, const std::string& path) {
  WeightEntry entry;
  entry.path = path;
  entry.dtype = tensor.dtype;
  entry.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  entry.type = type_of(entry.dtype);
  entry.data = tensor.data;
  entry.bytes = tensor.bytes;
  return entry;
}

class Safetensors final : public WeightContainer {
 public:
  const Entries& entries() const override { return entries_; }
  Status read(const Entries::value_type& entry, float* out) const override;
  std::string described_by() const override { return "config.json"; }

  Status add_file(const std::string& path);
  Status add_shards(const std::string& dir, const std::string& index_path);

 private:
  std::vector<File> files_;
  Entries entries_;
};

Status Safetensors::read(const Entries::value_type& named, float* out) const {
  const auto& [name, entry] = named;
  if (!entry.type) {
    return bad_input(fmt::format("{}: tensor {} is {}; supported types are F32, F16 and BF16",
                                 entry.path, name, describe(entry)));
  }
  widen(*entry.type, entry.data, entry.elements(), out);
  return {};
}

Status Safetensors::add_file(const std::string& path) {
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
    KvsTensor tensor;
    if (kvs_safetensors_tensor(file.get(), i, &tensor) != 0) {
      return bad_input(fmt::format("{}: tensor {} of {} cannot be read", path, i, count));
    }
    const auto [at, added] = entries_.emplace(tensor.name, entry_of(tensor, path));
    if (!added) {
      return bad_input(fmt::format("{}: tensor {} is also in {}; remove one of the files", path,
                                   at->first, at->second.path));
    }
  }
  files_.push_back(std::move(file));
  return {};
}

// The shards that an index names, each a file in the same folder.
Result<std::set<std::string>> shards_of(const Json& map, const std::string& index_path) {
  std::set<std::string> shards;
  for (const auto& [name, shard] : map.items()) {
    if (!shard.is_string() ||
        fs::path(shard.get<std::string>()).filename() != shard.get<std::string>()) {
      return bad_input(
          fmt::format("{}: weight_map gives {} for {}; a file name in the same folder "
                      "is expected",
                      index_path, shard.dump(), name));
    }
    shards.insert(shard.get<std::string>());
  }
  return shards;
}

Status Safetensors::add_shards(const std::string& dir, const std::string& index_path) {
  KVSWEEP_ASSIGN(const Json index, read_json_file(index_path));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty()) {
    return bad_input(index_path + ": weight_map is missing; it must name the shard of each tensor");
  }
  KVSWEEP_ASSIGN(const auto shards, shards_of(*map, index_path));
  for (const std::string& shard : shards) {
    const std::string path = (fs::path(dir) / shard).string();
    if (std::error_code code; !fs::exists(path, code)) {
      return bad_input(
          fmt::format("{} is missing, which {} names; download the model again", path, index_path));
    }
    KVSWEEP_TRY(add_file(path));
  }
  for (const auto& [name, shard] : map->items()) {
    const auto found = entries_.find(name);
    const std::string path = (fs::path(dir) / shard.get<std::string>()).string();
    if (found == entries_.end() || found->second.path != path) {
      return bad_input(fmt::format("{}: tensor {} is not in {}, where the index places it",
                                   index_path, name, path));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<WeightContainer>> open_safetensors(const std::string& model_dir) {
  auto container = std::make_unique<Safetensors>();
  const std::string single = (fs::path(model_dir) / "model.safetensors").string();
  const std::string index = single + ".index.json";
  std::error_code code;
  if (fs::exists(single, code)) {
    KVSWEEP_TRY(container->add_file(single));
  } else if (fs::exists(index, code)) {
    KVSWEEP_TRY(container->add_shards(model_dir, index));
  } else {
    return bad_input(
        fmt::format("{} has neither model.safetensors nor "
                    "model.safetensors.index.json; weights are read from these only",
                    model_dir));
  }
  if (container->entries().empty()) return bad_input(single + " holds no tensors");
  return std::unique_ptr<WeightContainer>(std::move(container));
}

}  // namespace kvsweep::model
