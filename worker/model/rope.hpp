// Rotary position embedding: angular steps, and the tables of cosines and sines.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "worker/model/rope_config.hpp"

namespace kvsweep::model {

// Angular step per position of each pair of channels that rotate, computed in fp32 with the
// operations transformers uses (modeling_rope_utils.py), so that both round alike. d is the number
// of these channels, `length` how many tokens the sequence may have in the end.
//   standard  f_i = theta^(-2i/d)
//   linear    f_i / factor
//   dynamic   f_i with theta (factor length / trained - factor + 1)^(d / (d - 2)) for theta, length
//             at least trained (NTK-aware scaling, as bloc97 and emozilla published it)
//   yarn      f_i for fast pairs, f_i / factor for slow ones, a ramp between (Peng et al. 2023)
//   longrope  f_i / short_i, or f_i / long_i when length > original (Ding et al. 2024)
//   llama3    wavelength w = 2 pi / f_i: f_i when w < original / high; f_i / factor when
//             w > original / low; between them a blend linear in original / w
std::vector<float> inverse_frequencies(const RopeConfig& config, int head_dim, int64_t length = 0);

// Sequences whose lengths have the same class have the same table.
int64_t length_class(const RopeConfig& config, int64_t length);

// cos and sin of position * f_i, filled as positions are asked for. Not thread-safe in `row`'s
// first use of a position: call `reserve` before sharing.
class RopeTable {
 public:
  RopeTable(const RopeConfig& config, int head_dim, int64_t length = 0);

  void reserve(int64_t positions);  // makes positions below `positions` available
  // One cosine for each pair of channels, then as many sines.
  const float* row(int64_t position) const { return rows_[static_cast<size_t>(position)]; }
  // The same of all positions reserved, by position; valid until more are reserved.
  const float* const* rows() const { return rows_.data(); }

 private:
  int64_t half_;
  float scale_;
  std::vector<float> inv_freq_;
  std::vector<std::vector<float>> blocks_;  // kBlock positions each
  std::vector<const float*> rows_;
};

// The tables of one setting: one, or one for each class of lengths. Not thread-safe.
class RopeTables {
 public:
  RopeTables(RopeConfig config, int head_dim) : config_(std::move(config)), head_dim_(head_dim) {}

  int rotary_channels() const { return model::rotary_channels(config_, head_dim_); }
  // The row of `position` in a sequence that may have `length` tokens in the end. Valid until
  // `trim`.
  const float* row(int64_t length, int64_t position);
  // RopeTable::rows of such a sequence, of which a row was asked for; valid until the next `row`.
  const float* const* rows(int64_t length) const;
  // Forgets all tables when there are many, as dynamic scaling makes one for each length.
  void trim();

 private:
  RopeConfig config_;
  int head_dim_;
  std::map<int64_t, RopeTable> tables_;  // by class of length
};

}  // namespace kvsweep::model
