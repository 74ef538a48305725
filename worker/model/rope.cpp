#include "worker/model/rope.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/where.h>
#include <algorithm>
#include <cmath>
#include <cstring>

namespace kvsweep::model {
namespace {

// Tables grow in blocks of this many positions, each computed alone: ATen's vector loops treat the
// last elements of a tensor with scalar code, so a value may depend on the tensor it is part of.
constexpr int64_t kBlock = 256;

constexpr size_t kManyTables = 64;

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

// theta^(2i/d)
at::Tensor powers(double theta, int channels) {
  const at::Tensor exponents =
      at::arange(0, channels, 2, at::TensorOptions().dtype(at::kFloat)) / channels;
  return at::pow(at::Scalar(theta), exponents);
}

double dynamic_theta(const RopeConfig& config, int channels, int64_t length) {
  const double trained = static_cast<double>(config.trained_context);
  const double stretch = config.factor * std::max(static_cast<double>(length), trained) / trained -
                         (config.factor - 1.0);
  const double d = channels;
  return config.theta * std::pow(stretch, d / (d - 2.0));
}

// The pair (a real number) that turns `rotations` times within the original context.
double yarn_pair(const RopeConfig& config, int channels, double rotations) {
  const double context = static_cast<double>(config.original_context);
  return channels * std::log(context / (rotations * 2.0 * M_PI)) / (2.0 * std::log(config.theta));
}

at::Tensor yarn_frequencies(const RopeConfig& config, int channels) {
  double low = yarn_pair(config, channels, config.beta_fast);
  double high = yarn_pair(config, channels, config.beta_slow);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, channels - 1.0);
  if (low == high) high += 0.001;  // no division by zero
  const at::Tensor pairs = at::arange(0, channels / 2, at::TensorOptions().dtype(at::kFloat));
  const at::Tensor ramp = at::clamp((pairs - low) / (high - low), 0, 1);
  const at::Tensor kept = 1.0 - ramp;
  const at::Tensor steps = powers(config.theta, channels);
  return at::reciprocal(steps * config.factor) * (1.0 - kept) + at::reciprocal(steps) * kept;
}

at::Tensor longrope_frequencies(const RopeConfig& config, int channels, int64_t length) {
  const std::vector<double>& factors =
      length > config.original_context ? config.long_factors : config.short_factors;
  std::vector<float> narrow(factors.begin(), factors.end());
  const at::Tensor stretch =
      at::from_blob(narrow.data(), {static_cast<int64_t>(narrow.size())}, at::kFloat);
  return at::reciprocal(stretch * powers(config.theta, channels));
}

at::Tensor frequencies(const RopeConfig& config, int channels, int64_t length) {
  if (config.type == RopeType::yarn) return yarn_frequencies(config, channels);
  if (config.type == RopeType::longrope) return longrope_frequencies(config, channels, length);
  const bool dynamic = config.type == RopeType::dynamic;
  const double theta = dynamic ? dynamic_theta(config, channels, length) : config.theta;
  const at::Tensor inv_freq = at::reciprocal(powers(theta, channels));
  if (config.type == RopeType::linear) return inv_freq / config.factor;
  if (config.type == RopeType::llama3) return blend_llama3(inv_freq, config);
  return inv_freq;
}

}  // namespace

std::vector<float> inverse_frequencies(const RopeConfig& config, int head_dim, int64_t length) {
  const int channels = rotary_channels(config, head_dim);
  const at::Tensor inv_freq = frequencies(config, channels, length).contiguous();
  const float* data = inv_freq.const_data_ptr<float>();
  return {data, data + channels / 2};
}

int64_t length_class(const RopeConfig& config, int64_t length) {
  if (config.type == RopeType::dynamic) return std::max(length, config.trained_context);
  if (config.type == RopeType::longrope) return length > config.original_context ? 1 : 0;
  return 0;
}

RopeTable::RopeTable(const RopeConfig& config, int head_dim, int64_t length)
    : half_(rotary_channels(config, head_dim) / 2),
      scale_(static_cast<float>(config.attention_factor)),
      inv_freq_(inverse_frequencies(config, head_dim, length)) {}

void RopeTable::reserve(int64_t positions) {
  while (static_cast<int64_t>(blocks_.size()) * kBlock < positions) {
    const int64_t first = static_cast<int64_t>(blocks_.size()) * kBlock;
    const at::Tensor frequencies = at::from_blob(inv_freq_.data(), {half_}, at::kFloat);
    const at::Tensor angles = at::outer(
        at::arange(first, first + kBlock, at::TensorOptions().dtype(at::kFloat)), frequencies);
    const at::Tensor cosines = (at::cos(angles) * scale_).contiguous();
    const at::Tensor sines = (at::sin(angles) * scale_).contiguous();
    std::vector<float> block(static_cast<size_t>(kBlock * 2 * half_));
    for (int64_t i = 0; i < kBlock; ++i) {
      float* row = block.data() + i * 2 * half_;
      std::memcpy(row, cosines.const_data_ptr<float>() + i * half_, half_ * sizeof(float));
      std::memcpy(row + half_, sines.const_data_ptr<float>() + i * half_, half_ * sizeof(float));
    }
    blocks_.push_back(std::move(block));
    for (int64_t i = 0; i < kBlock; ++i) rows_.push_back(blocks_.back().data() + i * 2 * half_);
  }
}

const float* RopeTables::row(int64_t length, int64_t position) {
  auto table = tables_.find(length_class(config_, length));
  if (table == tables_.end()) {
    table =
        tables_.emplace(length_class(config_, length), RopeTable(config_, head_dim_, length)).first;
  }
  table->second.reserve(position + 1);
  return table->second.row(position);
}

const float* const* RopeTables::rows(int64_t length) const {
  return tables_.at(length_class(config_, length)).rows();
}

void RopeTables::trim() {
  if (tables_.size() > kManyTables) tables_.clear();
}

}  // namespace kvsweep::model
