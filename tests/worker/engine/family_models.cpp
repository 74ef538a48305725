#include "tests/worker/engine/family_models.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "core/fnv.hpp"

namespace kvsweep::test {
namespace {

// In [-1, 1), multiples of 2^-23: SplitMix64 (Steele et al. 2014) from FNV-1a.
std::vector<float> uniform(const std::string& name, int64_t count) {
  std::vector<float> out;
  uint64_t state = fnv1a64(name);
  for (int64_t i = 0; i < count; ++i) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    out.push_back(static_cast<float>(static_cast<int64_t>(z >> 40) - (1 << 23)) * 0x1p-23f);
  }
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<float> random_tensor(const std::string& variant, const std::string& name,
                                 const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values = uniform(variant + "/" + name, count);
  const double root = std::sqrt(static_cast<double>(shape.back()));
  float scale = static_cast<float>(2.5 / root);
  float shift = 0.0f;
  if (contains(name, "norm")) {
    scale = 0.5f;
    shift = contains(variant, "gemma") ? 0.0f : 1.0f;
  } else if (contains(name, ".bias")) {
    scale = 0.25f;
  } else if (contains(name, "embed")) {
    scale = static_cast<float>(5.0 / root);
  }
  for (float& value : values) value = shift + value * scale;
  return values;
}

// The golden lists the tensors of layer 0 only.
std::vector<std::pair<std::string, std::vector<int64_t>>> tensors_of(const Json& golden) {
  const int64_t layers = golden.at("config").at("num_hidden_layers").get<int64_t>();
  const std::string first = "model.layers.0.";
  std::vector<std::pair<std::string, std::vector<int64_t>>> out;
  for (const auto& [name, shape] : golden.at("tensors").items()) {
    const bool layered = name.rfind(first, 0) == 0;
    for (int64_t layer = 0; layer < (layered ? layers : 1); ++layer) {
      const std::string full =
          layered ? "model.layers." + std::to_string(layer) + "." + name.substr(first.size())
                  : name;
      out.emplace_back(full, shape.get<std::vector<int64_t>>());
    }
  }
  return out;
}

std::string safetensors_of(const std::string& variant, const Json& golden) {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, shape] : tensors_of(golden)) {
    const std::vector<float> values = random_tensor(variant, name, shape);
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text + data;
}

}  // namespace

const Json& family_goldens() {
  static const Json golden = [] {
    Result<Json> json =
        read_json_file(std::string(KVSWEEP_SOURCE_DIR) + "/tests/worker/model/families.json");
    if (!json.ok()) throw std::runtime_error(json.error().message);
    return std::move(json).value();
  }();
  return golden;
}

std::vector<std::string> family_variants() {
  std::vector<std::string> names;
  for (const auto& [name, golden] : family_goldens().items()) names.push_back(name);
  return names;
}

std::string family_of(const std::string& variant) {
  return variant.substr(0, variant.find('-'));
}

FamilyModel::FamilyModel(const std::string& variant) : golden_(family_goldens().at(variant)) {
  configure(Json::object());
  dir_.write("model.safetensors", safetensors_of(variant, golden_));
}

void FamilyModel::configure(const Json& changes) const {
  Json config = golden_.at("config");
  for (const auto& [field, value] : changes.items()) {
    if (value.is_discarded()) {
      config.erase(field);
    } else {
      config[field] = value;
    }
  }
  dir_.write("config.json", config.dump());
}

double golden_difference(const Json& one, const std::vector<float>& logits, int64_t vocab) {
  constexpr double kUnit = 1e-5;
  double largest = 0;
  const Json& rows = one.at("logits");
  for (size_t position = 0; position < rows.size(); ++position) {
    const int64_t columns = static_cast<int64_t>(rows[position].size());
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t column = (static_cast<int64_t>(position) * columns + i) % vocab;
      const double expected = rows[position][static_cast<size_t>(i)].get<double>() * kUnit;
      const double found =
          logits[position * static_cast<size_t>(vocab) + static_cast<size_t>(column)];
      const double difference = std::fabs(found - expected);
      if (!(difference <= largest)) largest = difference;  // NaN shows
    }
  }
  return largest;
}

}  // namespace kvsweep::test
