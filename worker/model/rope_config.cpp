#include "worker/model/rope_config.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kvsweep::model {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 31;

const char* type_key(const ConfigFields& fields) {
  return fields.has("rope_type") ? "rope_type" : "type";
}

Result<RopeType> type_of(const ConfigFields& fields, const RopeRules& rules) {
  const char* key = type_key(fields);
  KVSWEEP_ASSIGN(const std::string name, fields.text(key, "default"));
  if (name == "default") return RopeType::standard;
  if (rules.phi3) {
    if (name == "longrope" || name == "su" || name == "yarn") return RopeType::longrope;
    return fields.error(key, fmt::format("is \"{}\"; supported in this family are \"default\" and "
                                         "\"longrope\"",
                                         name));
  }
  if (name == "linear") return RopeType::linear;
  if (name == "dynamic") return RopeType::dynamic;
  if (name == "yarn") return RopeType::yarn;
  if (name == "longrope") return RopeType::longrope;
  if (name == "llama3") return RopeType::llama3;
  return fields.error(
      key, fmt::format("is \"{}\"; supported are \"default\", \"linear\", \"dynamic\", \"yarn\", "
                       "\"longrope\" and \"llama3\"",
                       name));
}

Status read_partial(const ConfigFields& top, const ConfigFields& fields, const RopeRules& rules,
                    RopeConfig& out) {
  KVSWEEP_ASSIGN(const double outside, top.positive("partial_rotary_factor", 1.0));
  KVSWEEP_ASSIGN(out.partial, fields.positive("partial_rotary_factor", outside));
  if (out.partial != 1.0 && !rules.phi3) {
    return fields.error("partial_rotary_factor",
                        fmt::format("is {}; in this family only 1 (all channels rotate) is "
                                    "supported",
                                    out.partial));
  }
  const int channels = out.partial > 1.0 ? 0 : rotary_channels(out, rules.head_dim);
  if (channels < 2 || channels % 2 != 0) {
    return fields.error(
        "partial_rotary_factor",
        fmt::format("is {}; of heads of {} channels it must rotate an even number above zero",
                    out.partial, rules.head_dim));
  }
  return {};
}

// As in transformers: the value at the top wins, and a family's own default is such a value.
Status read_original(const ConfigFields& top, const ConfigFields& fields, const RopeRules& rules,
                     RopeConfig& out) {
  const char* key = "original_max_position_embeddings";
  out.original_context = rules.original_context;
  if (rules.original_context == 0) {
    KVSWEEP_ASSIGN(out.original_context, fields.integer(key, 1, kMaxContext, rules.max_context));
  }
  KVSWEEP_ASSIGN(out.original_context, top.integer(key, 1, kMaxContext, out.original_context));
  return {};
}

Status read_llama3(const ConfigFields& fields, RopeConfig& out) {
  KVSWEEP_ASSIGN(out.factor, fields.positive("factor"));
  KVSWEEP_ASSIGN(out.low_freq_factor, fields.positive("low_freq_factor"));
  KVSWEEP_ASSIGN(out.high_freq_factor, fields.positive("high_freq_factor"));
  if (out.high_freq_factor <= out.low_freq_factor) {
    return fields.error("high_freq_factor",
                        fmt::format("is {} and must exceed low_freq_factor, which is {}",
                                    out.high_freq_factor, out.low_freq_factor));
  }
  return {};
}

// Peng et al. 2023 (YaRN), equation 22: attention is sharpened by 0.1 ln(factor) + 1.
double yarn_scale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

Status read_yarn(const ConfigFields& fields, RopeConfig& out) {
  KVSWEEP_ASSIGN(out.factor, fields.positive("factor"));
  KVSWEEP_ASSIGN(out.beta_fast, fields.positive("beta_fast", out.beta_fast));
  KVSWEEP_ASSIGN(out.beta_slow, fields.positive("beta_slow", out.beta_slow));
  KVSWEEP_ASSIGN(out.truncate, fields.boolean("truncate", true));
  if (out.theta <= 1.0) {
    return fields.error("rope_theta", fmt::format("is {}; yarn needs more than 1", out.theta));
  }
  out.attention_factor = yarn_scale(out.factor, 1.0);
  if (fields.has("mscale") && fields.has("mscale_all_dim")) {
    KVSWEEP_ASSIGN(const double mscale, fields.positive("mscale"));
    KVSWEEP_ASSIGN(const double all_dim, fields.positive("mscale_all_dim"));
    out.attention_factor = yarn_scale(out.factor, mscale) / yarn_scale(out.factor, all_dim);
  }
  KVSWEEP_ASSIGN(out.attention_factor, fields.positive("attention_factor", out.attention_factor));
  return {};
}

Status read_factors(const ConfigFields& fields, const char* name, int channels,
                    std::vector<double>& out) {
  KVSWEEP_ASSIGN(out, fields.positives(name));
  if (static_cast<int>(out.size()) == channels / 2) return {};
  return fields.error(name, fmt::format("has {} values and must have {}, one for each pair of "
                                        "channels that rotate",
                                        out.size(), channels / 2));
}

// Ding et al. 2024 (LongRoPE), with the attention factor of Phi-3.
Status read_longrope(const ConfigFields& fields, const RopeRules& rules, RopeConfig& out) {
  const int channels = rotary_channels(out, rules.head_dim);
  KVSWEEP_TRY(read_factors(fields, "short_factor", channels, out.short_factors));
  KVSWEEP_TRY(read_factors(fields, "long_factor", channels, out.long_factors));
  const double original = static_cast<double>(out.original_context);
  if (out.original_context < 2) {
    return fields.error("original_max_position_embeddings", "is 1; longrope needs at least 2");
  }
  KVSWEEP_ASSIGN(out.factor,
                 fields.positive("factor", static_cast<double>(rules.max_context) / original));
  const double usual =
      out.factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(out.factor) / std::log(original));
  KVSWEEP_ASSIGN(out.attention_factor, fields.positive("attention_factor", usual));
  return {};
}

Status read_scaling(const ConfigFields& fields, const RopeRules& rules, RopeConfig& out) {
  switch (out.type) {
    case RopeType::standard:
      return {};
    case RopeType::linear: {
      KVSWEEP_ASSIGN(out.factor, fields.positive("factor"));
      return {};
    }
    case RopeType::dynamic: {
      KVSWEEP_ASSIGN(out.factor, fields.positive("factor"));
      out.trained_context = rules.max_context;
      if (rules.head_dim > 2) return {};
      return fields.error(type_key(fields),
                          "is \"dynamic\", which needs heads of more than 2 "
                          "channels");
    }
    case RopeType::yarn:
      return read_yarn(fields, out);
    case RopeType::longrope:
      return read_longrope(fields, rules, out);
    case RopeType::llama3:
      return read_llama3(fields, out);
  }
  return {};
}

}  // namespace

int rotary_channels(const RopeConfig& config, int head_dim) {
  return static_cast<int>(head_dim * config.partial);
}

Result<RopeConfig> read_rope_object(const ConfigFields& top, const ConfigFields& fields,
                                    const RopeRules& rules) {
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    if (fields.has(kind)) {
      return fields.error(kind,
                          "is present; settings per layer type are not supported in this "
                          "family");
    }
  }
  RopeConfig out;
  KVSWEEP_ASSIGN(out.theta, fields.positive("rope_theta", rules.theta));
  KVSWEEP_ASSIGN(out.type, type_of(fields, rules));
  KVSWEEP_TRY(read_partial(top, fields, rules, out));
  KVSWEEP_TRY(read_original(top, fields, rules, out));
  KVSWEEP_TRY(read_scaling(fields, rules, out));
  return out;
}

Result<RopeConfig> read_rope(const ConfigFields& config, const RopeRules& rules) {
  RopeRules filled = rules;
  KVSWEEP_ASSIGN(filled.theta, config.positive("rope_theta", rules.theta));
  if (config.has("rope_scaling") && config.has("rope_parameters") &&
      !config.same("rope_scaling", "rope_parameters")) {
    return config.error("rope_scaling",
                        "and rope_parameters are both present and differ; remove "
                        "one of them");
  }
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!config.has(key)) continue;
    KVSWEEP_ASSIGN(const ConfigFields fields, config.object(key));
    return read_rope_object(config, fields, filled);
  }
  return read_rope_object(config, config.empty("rope_parameters"), filled);
}

}  // namespace kvsweep::model
