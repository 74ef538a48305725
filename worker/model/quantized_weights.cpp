#include "worker/model/quantized_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "worker/model/stored_matrix.hpp"

namespace kvsweep::model {
namespace {

using Method = QuantizationRule::Method;
using Shape = std::vector<int64_t>;

constexpr int64_t kPerWord = 8;
// Which of a word's eight outputs its codes belong to, lowest bits first.
constexpr int64_t kAwqOrder[kPerWord] = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr int64_t kInOrder[kPerWord] = {0, 1, 2, 3, 4, 5, 6, 7};

uint32_t word_at(const uint8_t* bytes, int64_t index) {
  uint32_t word;
  std::memcpy(&word, bytes + 4 * index, sizeof(word));
  return word;
}

float code_of(uint32_t word, int64_t index) {
  return static_cast<float>((word >> (4 * index)) & 15u);
}

// One quantized layer. The entries are those of the inner container.
struct Layer {
  const WeightContainer::Entries::value_type* codes = nullptr;
  const WeightContainer::Entries::value_type* zeros = nullptr;
  const WeightContainer::Entries::value_type* scales = nullptr;
  std::vector<int32_t> groups;  // of each input
  int64_t in = 0;
  int64_t out = 0;
};

class Quantized final : public WeightContainer {
 public:
  Quantized(std::unique_ptr<WeightContainer> inner, const QuantizationRule& rule)
      : inner_(std::move(inner)), rule_(rule) {}
  Status fill();

  const Entries& entries() const override { return entries_; }
  Status read(const Entries::value_type& entry, float* out) const override;
  std::string described_by() const override { return inner_->described_by(); }

 private:
  Status add_layer(const std::string& base);
  Result<const Entries::value_type*> part(const std::string& name) const;
  Status expect(const Entries::value_type& part, const Shape& shape, bool words) const;
  Status read_groups(const std::string& base, Layer& layer, int64_t groups) const;
  std::vector<float> zeros_of(const Layer& layer, int64_t groups) const;

  std::unique_ptr<WeightContainer> inner_;
  QuantizationRule rule_;
  Entries entries_;
  std::map<std::string, Layer> layers_;
};

Result<const WeightContainer::Entries::value_type*> Quantized::part(const std::string& name) const {
  const auto found = inner_->entries().find(name);
  if (found != inner_->entries().end()) return &*found;
  return bad_input(fmt::format("{}: tensor {} is missing, which belongs to a quantized layer",
                               inner_->entries().begin()->second.path, name));
}

Status Quantized::expect(const Entries::value_type& part, const Shape& shape, bool words) const {
  const WeightEntry& entry = part.second;
  const bool typed = words ? entry.dtype == "I32" : entry.type.has_value();
  if (typed && entry.shape == shape) return {};
  return bad_input(
      fmt::format("{}: tensor {} is {}, but its layer and quantization_config call for "
                  "{} [{}]",
                  entry.path, part.first, describe(entry), words ? "I32" : "F16, BF16 or F32",
                  fmt::join(shape, ", ")));
}

Status Quantized::read_groups(const std::string& base, Layer& layer, int64_t groups) const {
  layer.groups.resize(static_cast<size_t>(layer.in));
  const auto given = inner_->entries().find(base + ".g_idx");
  if (given == inner_->entries().end()) {
    const int64_t size = rule_.group > 0 ? rule_.group : layer.in;
    for (int64_t i = 0; i < layer.in; ++i) {
      layer.groups[static_cast<size_t>(i)] = static_cast<int32_t>(i / size);
    }
    return {};
  }
  KVSWEEP_TRY(expect(*given, {layer.in}, true));
  for (int64_t i = 0; i < layer.in; ++i) {
    const auto group = static_cast<int32_t>(word_at(given->second.data, i));
    if (group < 0 || group >= groups) {
      return bad_input(fmt::format("{}: tensor {} holds {} for input {}; there are {} groups",
                                   given->second.path, given->first, group, i, groups));
    }
    layer.groups[static_cast<size_t>(i)] = group;
  }
  return {};
}

Status Quantized::add_layer(const std::string& base) {
  Layer layer;
  KVSWEEP_ASSIGN(layer.codes, part(base + ".qweight"));
  KVSWEEP_ASSIGN(layer.zeros, part(base + ".qzeros"));
  KVSWEEP_ASSIGN(layer.scales, part(base + ".scales"));
  const Shape& shape = layer.codes->second.shape;
  if (shape.size() != 2) return expect(*layer.codes, {0, 0}, true);
  const bool awq = rule_.method == Method::awq;
  layer.in = shape[0] * (awq ? 1 : kPerWord);
  layer.out = shape[1] * (awq ? kPerWord : 1);
  if (layer.in < 1 || layer.out < kPerWord || layer.out % kPerWord != 0) {
    return bad_input(
        fmt::format("{}: tensor {} is {}; a layer needs a number of outputs that is a "
                    "multiple of 8",
                    layer.codes->second.path, layer.codes->first, describe(layer.codes->second)));
  }
  const int64_t size = rule_.group > 0 ? rule_.group : layer.in;
  const int64_t groups = (layer.in + size - 1) / size;
  KVSWEEP_TRY(expect(*layer.codes, shape, true));
  KVSWEEP_TRY(expect(*layer.zeros, {groups, layer.out / kPerWord}, true));
  KVSWEEP_TRY(expect(*layer.scales, {groups, layer.out}, false));
  KVSWEEP_TRY(read_groups(base, layer, groups));

  WeightEntry entry = layer.codes->second;
  entry.dtype = awq ? "AWQ4" : "GPTQ4";
  entry.shape = {layer.out, layer.in};
  entry.type.reset();
  const std::string name = base + ".weight";
  if (!entries_.emplace(name, std::move(entry)).second) {
    return bad_input(fmt::format("{}: tensors {} and {}.qweight are both there; remove one of them",
                                 layer.codes->second.path, name, base));
  }
  layers_.emplace(name, std::move(layer));
  return {};
}

Status Quantized::fill() {
  std::vector<std::string> bases;
  const std::string mark = ".qweight";
  entries_ = inner_->entries();
  for (const auto& [name, entry] : inner_->entries()) {
    if (name.ends_with(mark)) bases.push_back(name.substr(0, name.size() - mark.size()));
  }
  for (const std::string& base : bases) {
    KVSWEEP_TRY(add_layer(base));
    for (const char* part : {".qweight", ".qzeros", ".scales", ".g_idx"}) {
      entries_.erase(base + part);
    }
  }
  return {};
}

// [groups, out]
std::vector<float> Quantized::zeros_of(const Layer& layer, int64_t groups) const {
  const int64_t* order = rule_.method == Method::awq ? kAwqOrder : kInOrder;
  const float more = rule_.zero_less_one ? 1.0f : 0.0f;
  std::vector<float> zeros(static_cast<size_t>(groups * layer.out));
  for (int64_t i = 0; i < groups * layer.out / kPerWord; ++i) {
    const uint32_t word = word_at(layer.zeros->second.data, i);
    for (int64_t k = 0; k < kPerWord; ++k) {
      zeros[static_cast<size_t>(i * kPerWord + order[k])] = code_of(word, k) + more;
    }
  }
  return zeros;
}

Status Quantized::read(const Entries::value_type& named, float* out) const {
  const auto found = layers_.find(named.first);
  if (found == layers_.end()) {
    return inner_->read(*inner_->entries().find(named.first), out);
  }
  const Layer& layer = found->second;
  const WeightEntry& scale_entry = layer.scales->second;
  const int64_t groups = scale_entry.shape[0];
  std::vector<float> scales(static_cast<size_t>(scale_entry.elements()));
  widen(*scale_entry.type, scale_entry.data, scale_entry.elements(), scales.data());
  const std::vector<float> zeros = zeros_of(layer, groups);
  const auto put = [&](int64_t output, int64_t input, float code) {
    const int64_t group = layer.groups[static_cast<size_t>(input)];
    const auto at = static_cast<size_t>(group * layer.out + output);
    out[output * layer.in + input] = scales[at] * (code - zeros[at]);
  };
  const uint8_t* words = layer.codes->second.data;
  if (rule_.method == Method::awq) {
    const int64_t columns = layer.out / kPerWord;
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t input = 0; input < layer.in; ++input) {
        const uint32_t word = word_at(words, input * columns + column);
        for (int64_t k = 0; k < kPerWord; ++k) {
          put(column * kPerWord + kAwqOrder[k], input, code_of(word, k));
        }
      }
    }
    return {};
  }
  for (int64_t output = 0; output < layer.out; ++output) {
    for (int64_t row = 0; row < layer.in / kPerWord; ++row) {
      const uint32_t word = word_at(words, row * layer.out + output);
      for (int64_t k = 0; k < kPerWord; ++k) put(output, row * kPerWord + k, code_of(word, k));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<WeightContainer>> quantized_weights(std::unique_ptr<WeightContainer> inner,
                                                           const QuantizationRule& rule) {
  if (rule.method == Method::none) return inner;
  auto container = std::make_unique<Quantized>(std::move(inner), rule);
  KVSWEEP_TRY(container->fill());
  return std::unique_ptr<WeightContainer>(std::move(container));
}

}  // namespace kvsweep::model
