#include "worker/model/rope.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace kvsweep::model {
namespace {

// Tables grow in blocks of this many positions, each computed alone: ATen's vector loops treat the
// last elements of a tensor with scalar code, so a value may depend on the tensor it is part of.
constexpr int64_t kBlock = 256;

Status read_llama3(const ConfigFields& fields, int64_t max_context, RopeConfig& out) {
  KVSWEEP_ASSIGN(out.factor, fields.positive("factor"));
  KVSWEEP_ASSIGN(out.low_freq_factor, fields.positive("low_freq_factor"));
  KVSWEEP_ASSIGN(out.high_freq_factor, fields.positive("high_freq_factor"));
  KVSWEEP_ASSIGN(out.original_context, fields.integer("original_max_position_embeddings", 1,
                                                      int64_t{1} << 31, max_context));
  if (out.high_freq_factor <= out.low_freq_factor) {
    return fields.error("high_freq_factor",
                        fmt::format("is {} and must exceed low_freq_factor, which is {}",
                                    out.high_freq_factor, out.low_freq_factor));
  }
  return {};
}

Status read_type(const ConfigFields& fields, int64_t max_context, RopeConfig& out) {
  const char* key = fields.has("rope_type") ? "rope_type" : "type";
  KVSWEEP_ASSIGN(std::string type, fields.text(key, "default"));
  KVSWEEP_ASSIGN(double part, fields.positive("partial_rotary_factor", 1.0));
  if (part != 1.0) {
    return fields.error("partial_rotary_factor",
                        fmt::format("is {}; only 1 (all channels rotate) is supported", part));
  }
  if (type == "default") return {};
  if (type == "linear") {
    out.type = RopeType::linear;
    KVSWEEP_ASSIGN(out.factor, fields.positive("factor"));
    return {};
  }
  if (type == "llama3") {
    out.type = RopeType::llama3;
    return read_llama3(fields, max_context, out);
  }
  return fields.error(
      key, fmt::format("is \"{}\"; supported are \"default\", \"linear\" and \"llama3\"", type));
}

at::Tensor blend_llama3(const at::Tensor& inv_freq, const RopeConfig& config) {
  const double context = static_cast<double>(config.original_context);
  const double low = context / config.low_freq_factor;
  const double high = context / config.high_freq_factor;
  const at::Tensor wavelength = at::reciprocal(inv_freq) * (2.0 * M_PI);
  const at::Tensor scaled = at::where(wavelength > low, inv_freq / config.factor, inv_freq);
  const at::Tensor smooth = (at::reciprocal(wavelength) * context - config.low_freq_factor) /
                            (config.high_freq_factor - config.low_freq_factor);
  const at::Tensor blended = (1.0 - smooth) * scaled / config.factor + smooth * scaled;
  const at::Tensor between =
      at::bitwise_and(at::logical_not(wavelength < high), at::logical_not(wavelength > low));
  return at::where(between, blended, scaled);
}

}  // namespace

Result<RopeConfig> read_rope(const ConfigFields& config, int64_t max_context) {
  RopeConfig out;
  if (config.has("rope_parameters")) {
    KVSWEEP_ASSIGN(ConfigFields fields, config.object("rope_parameters"));
    KVSWEEP_ASSIGN(double top, config.positive("rope_theta", 10000.0));
    KVSWEEP_ASSIGN(out.theta, fields.positive("rope_theta", top));
    KVSWEEP_TRY(read_type(fields, max_context, out));
    return out;
  }
  KVSWEEP_ASSIGN(out.theta, config.positive("rope_theta", 10000.0));
  if (config.has("rope_scaling")) {
    KVSWEEP_ASSIGN(ConfigFields fields, config.object("rope_scaling"));
    KVSWEEP_TRY(read_type(fields, max_context, out));
  }
  return out;
}

std::vector<float> inverse_frequencies(const RopeConfig& config, int head_dim) {
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, at::TensorOptions().dtype(at::kFloat)) / head_dim;
  at::Tensor inv_freq = at::reciprocal(at::pow(at::Scalar(config.theta), exponents));
  if (config.type == RopeType::linear) inv_freq = inv_freq / config.factor;
  if (config.type == RopeType::llama3) inv_freq = blend_llama3(inv_freq, config);
  inv_freq = inv_freq.contiguous();
  const float* data = inv_freq.const_data_ptr<float>();
  return {data, data + head_dim / 2};
}

RopeTable::RopeTable(const RopeConfig& config, int head_dim)
    : half_(head_dim / 2), inv_freq_(inverse_frequencies(config, head_dim)) {}

void RopeTable::reserve(int64_t positions) {
  while (static_cast<int64_t>(blocks_.size()) * kBlock < positions) {
    const int64_t first = static_cast<int64_t>(blocks_.size()) * kBlock;
    const at::Tensor frequencies = at::from_blob(inv_freq_.data(), {half_}, at::kFloat);
    const at::Tensor angles = at::outer(
        at::arange(first, first + kBlock, at::TensorOptions().dtype(at::kFloat)), frequencies);
    const at::Tensor cosines = at::cos(angles).contiguous();
    const at::Tensor sines = at::sin(angles).contiguous();
    std::vector<float> block(static_cast<size_t>(kBlock * 2 * half_));
    for (int64_t i = 0; i < kBlock; ++i) {
      float* row = block.data() + i * 2 * half_;
      std::memcpy(row, cosines.const_data_ptr<float>() + i * half_, half_ * sizeof(float));
      std::memcpy(row + half_, sines.const_data_ptr<float>() + i * half_, half_ * sizeof(float));
    }
    blocks_.push_back(std::move(block));
  }
}

const float* RopeTable::row(int64_t position) const {
  return blocks_[static_cast<size_t>(position / kBlock)].data() + (position % kBlock) * 2 * half_;
}

}  // namespace kvsweep::model
