#include "worker/model/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/model_config.hpp"
#include "worker/model/quantized_weights.hpp"
#include "worker/model/rows.hpp"
#include "worker/model/weight_container.hpp"

namespace kvsweep::model {
namespace {

namespace fs = std::filesystem;
using Entry = WeightContainer::Entries::value_type;

bool known_harmless(const std::string& name) {
  return name.ends_with("rotary_emb.inv_freq");
}

Error not_finite(const Entry& entry) {
  return bad_input(fmt::format("{}: tensor {} holds NaN or infinity; the file is damaged",
                               entry.second.path, entry.first));
}

// Safetensors, and what config.json says of their quantization.
Result<std::unique_ptr<WeightContainer>> open_folder(const std::string& model_dir) {
  KVSWEEP_ASSIGN(auto container, open_safetensors(model_dir));
  const std::string path = model_config_path(model_dir);
  if (std::error_code code; !fs::exists(path, code)) return container;
  KVSWEEP_ASSIGN(const Json config, read_model_config(model_dir));
  KVSWEEP_ASSIGN(const QuantizationRule rule, read_quantization(config, path));
  return quantized_weights(std::move(container), rule);
}

}  // namespace

std::string describe(const WeightEntry& entry) {
  return fmt::format("{} [{}]", entry.dtype, fmt::join(entry.shape, ", "));
}

struct WeightFiles::State {
  std::unique_ptr<WeightContainer> container;
  std::set<std::string> used;

  // Some quantizers write a bias of zeros for layers that have none.
  Result<bool> is_zero_bias(const Entry& entry) const;

  const Entry* get(const std::string& name) const;
  Result<const Entry*> find(const std::string& name, const std::vector<int64_t>& shape);
};

Result<bool> WeightFiles::State::is_zero_bias(const Entry& entry) const {
  if (!entry.first.ends_with(".bias") || entry.second.shape.size() != 1) return false;
  std::vector<float> values(static_cast<size_t>(entry.second.elements()));
  KVSWEEP_TRY(container->read(entry, values.data()));
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

const Entry* WeightFiles::State::get(const std::string& name) const {
  const auto found = container->entries().find(name);
  return found == container->entries().end() ? nullptr : &*found;
}

Result<const Entry*> WeightFiles::State::find(const std::string& name,
                                              const std::vector<int64_t>& shape) {
  const Entry* entry = get(name);
  if (entry == nullptr) {
    return bad_input(fmt::format("tensor {} [{}], which {} calls for, is not in {}", name,
                                 fmt::join(shape, ", "), container->described_by(),
                                 container->entries().begin()->second.path));
  }
  if (entry->second.shape != shape) {
    return bad_input(fmt::format("{}: tensor {} is {}, but {} calls for [{}]", entry->second.path,
                                 name, describe(entry->second), container->described_by(),
                                 fmt::join(shape, ", ")));
  }
  used.insert(name);
  return entry;
}

WeightFiles::WeightFiles(std::unique_ptr<State> state) : state_(std::move(state)) {}
WeightFiles::WeightFiles(WeightFiles&&) noexcept = default;
WeightFiles& WeightFiles::operator=(WeightFiles&&) noexcept = default;
WeightFiles::~WeightFiles() = default;

Result<std::unique_ptr<WeightContainer>> open_weights(const std::string& model) {
  return is_gguf_path(model) ? open_gguf(model) : open_folder(model);
}

Result<WeightFiles> WeightFiles::open(const std::string& model) {
  auto state = std::make_unique<State>();
  KVSWEEP_ASSIGN(state->container, open_weights(model));
  return WeightFiles(std::move(state));
}

std::map<std::string, WeightFiles::Totals> WeightFiles::totals() const {
  std::map<std::string, Totals> totals;
  for (const auto& [name, entry] : state_->container->entries()) {
    Totals& type = totals[entry.dtype];
    type.tensors += 1;
    type.elements += entry.elements();
    type.bytes += static_cast<int64_t>(entry.bytes);
  }
  return totals;
}

std::set<std::string> WeightFiles::paths() const {
  std::set<std::string> paths;
  for (const auto& [name, entry] : state_->container->entries()) paths.insert(entry.path);
  return paths;
}

int64_t WeightFiles::elements() const {
  int64_t sum = 0;
  for (const auto& [name, entry] : state_->container->entries()) sum += entry.elements();
  return sum;
}

bool WeightFiles::has(const std::string& name) const {
  return state_->get(name) != nullptr;
}

Status WeightFiles::read(const std::string& name, const std::vector<int64_t>& shape, float* out) {
  KVSWEEP_ASSIGN(const Entry* entry, state_->find(name, shape));
  KVSWEEP_TRY(state_->container->read(*entry, out));
  if (!all_finite(out, entry->second.elements())) return not_finite(*entry);
  return {};
}

Result<StoredMatrix> WeightFiles::stored(const std::string& name, int64_t rows, int64_t columns) {
  KVSWEEP_ASSIGN(const Entry* entry, state_->find(name, {rows, columns}));
  const WeightEntry& about = entry->second;
  if (!about.type) {
    return bad_input(
        fmt::format("{}: tensor {} is {}; it must be of a plain type such as F32, F16 "
                    "and BF16",
                    about.path, name, describe(about)));
  }
  StoredMatrix matrix(*about.type, rows, columns, about.data);
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows; ++i) {
    matrix.widen(i, 1, row.data());
    if (!all_finite(row.data(), columns)) return not_finite(*entry);
  }
  return matrix;
}

void WeightFiles::ignore(const std::string& name) {
  state_->used.insert(name);
}

bool WeightFiles::same_bytes(const std::string& a, const std::string& b) const {
  const Entry* first = state_->get(a);
  const Entry* second = state_->get(b);
  if (first == nullptr || second == nullptr) return false;
  const WeightEntry& x = first->second;
  const WeightEntry& y = second->second;
  return describe(x) == describe(y) && x.bytes == y.bytes &&
         std::memcmp(x.data, y.data, x.bytes) == 0;
}

Status WeightFiles::check_all_used() const {
  for (const Entry& named : state_->container->entries()) {
    const auto& [name, entry] = named;
    if (state_->used.count(name) != 0 || known_harmless(name)) continue;
    KVSWEEP_ASSIGN(const bool zero, state_->is_zero_bias(named));
    if (zero) continue;
    return bad_input(
        fmt::format("{}: tensor {} {} has no place in the model that {} describes; "
                    "the two do not belong together",
                    entry.path, name, describe(entry), state_->container->described_by()));
  }
  return {};
}

}  // namespace kvsweep::model
