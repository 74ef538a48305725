// Rotary position embedding: settings in both spellings, and the table of cosines and sines.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.hpp"
#include "worker/model/config_fields.hpp"

namespace kvsweep::model {

enum class RopeType { standard, linear, llama3 };

struct RopeConfig {
  RopeType type = RopeType::standard;
  double theta = 10000.0;
  double factor = 1.0;            // linear, llama3
  double low_freq_factor = 1.0;   // llama3
  double high_freq_factor = 4.0;  // llama3
  int64_t original_context = 0;   // llama3, tokens
};

// Reads `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling` at the top (older).
// Any other rope_type than default, linear and llama3 is refused by name.
Result<RopeConfig> read_rope(const ConfigFields& config, int64_t max_context);

// Angular step per position of each pair of channels [head_dim / 2], computed in fp32 with the
// operations transformers uses (modeling_rope_utils.py), so that both round alike.
//   standard  f_i = theta^(-2i/d)
//   linear    f_i / factor
//   llama3    wavelength w = 2 pi / f_i: f_i when w < original / high; f_i / factor when
//             w > original / low; between them a blend linear in original / w
std::vector<float> inverse_frequencies(const RopeConfig& config, int head_dim);

// cos and sin of position * f_i, filled as positions are asked for. Not thread-safe in `row`'s
// first use of a position: call `reserve` before sharing.
class RopeTable {
 public:
  RopeTable(const RopeConfig& config, int head_dim);

  void reserve(int64_t positions);  // makes positions below `positions` available
  // [head_dim / 2] cosines, then as many sines.
  const float* row(int64_t position) const;

 private:
  int64_t half_;
  std::vector<float> inv_freq_;
  std::vector<std::vector<float>> blocks_;  // kBlock positions each
};

}  // namespace kvsweep::model
