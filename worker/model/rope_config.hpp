// Settings of rotary position embedding, in both spellings that config.json has for them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "worker/model/config_fields.hpp"

namespace kvsweep::model {

enum class RopeType { standard, linear, dynamic, yarn, longrope, llama3 };

struct RopeConfig {
  RopeType type = RopeType::standard;
  double theta = 10000.0;
  double partial = 1.0;               // share of a head's channels that rotate, from the first on
  double factor = 1.0;                // all types but standard
  int64_t trained_context = 0;        // dynamic, tokens: max_position_embeddings
  int64_t original_context = 0;       // yarn, longrope, llama3, tokens
  double low_freq_factor = 1.0;       // llama3
  double high_freq_factor = 4.0;      // llama3
  double beta_fast = 32.0;            // yarn
  double beta_slow = 1.0;             // yarn
  bool truncate = true;               // yarn
  std::vector<double> short_factors;  // longrope [rotary channels / 2]
  std::vector<double> long_factors;   // longrope [rotary channels / 2]
  double attention_factor = 1.0;      // yarn, longrope: multiplies cosines and sines
};

// What a family adds to the reading.
struct RopeRules {
  int64_t max_context = 0;  // max_position_embeddings
  int head_dim = 0;
  double theta = 10000.0;        // when config.json names none
  bool phi3 = false;             // partial rotation; longrope only, which "su" and "yarn" mean too
  int64_t original_context = 0;  // when the top of config.json names none; 0: no such default
};

// Channels of a head that rotate.
int rotary_channels(const RopeConfig& config, int head_dim);

// Reads `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling` at the top (older).
// bad_input names the field: a type that is not in RopeType, a value out of range, both spellings
// with different content, settings per layer type.
Result<RopeConfig> read_rope(const ConfigFields& config, const RopeRules& rules);

// Reads one object of settings; `top` is the whole config.json.
Result<RopeConfig> read_rope_object(const ConfigFields& top, const ConfigFields& fields,
                                    const RopeRules& rules);

}  // namespace kvsweep::model
