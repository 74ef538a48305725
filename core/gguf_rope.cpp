#include "core/gguf_rope.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace kvsweep {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 30;

struct Llama3 {
  double factor, low, high, context;
};

// Dubey et al. 2024: a wavelength below context / high is kept, above context / low it is stretched
// by `factor`, between them 1 / divisor is linear in context / wavelength.
double llama3_divisor(const Llama3& rule, double frequency) {
  const double wavelength = 2.0 * M_PI / frequency;
  if (wavelength < rule.context / rule.high) return 1.0;
  if (wavelength > rule.context / rule.low) return rule.factor;
  const double smooth = (rule.context / wavelength - rule.low) / (rule.high - rule.low);
  return 1.0 / ((1.0 - smooth) / rule.factor + smooth);
}

class Rope {
 public:
  Rope(const GgufFile& file, const std::string& architecture, Json& config)
      : file_(file), name_(architecture), config_(config) {}
  Status add();

 private:
  std::string key(const char* part) const { return name_ + ".rope." + part; }
  int64_t field(const char* name) const { return config_.at(name).get<int64_t>(); }
  Status add_partial(Json& rope) const;
  Status add_scaling(Json& rope) const;
  Status add_yarn(Json& rope) const;
  Status add_divisors(Json& rope) const;
  Status add_long(Json& rope) const;
  Result<std::vector<double>> factors(const char* tensor) const;
  bool is_llama3(const std::vector<double>& divisors, double theta, const Llama3& rule) const;

  const GgufFile& file_;
  std::string name_;
  Json& config_;
  int64_t channels_ = 0;  // that rotate
};

Status Rope::add_partial(Json& rope) const {
  const int64_t head_dim = field("head_dim");
  if (channels_ == head_dim) return {};
  if (name_ != "phi3") {
    return file_.error(key("dimension_count"),
                       fmt::format("is {}, but a head has {} channels; in this architecture all of "
                                   "them rotate",
                                   channels_, head_dim));
  }
  // Whoever multiplies by the head's size and cuts must get the number again.
  double part = static_cast<double>(channels_) / static_cast<double>(head_dim);
  if (static_cast<int64_t>(part * static_cast<double>(head_dim)) < channels_) {
    part = std::nextafter(part, 1.0);
  }
  rope["partial_rotary_factor"] = part;
  return {};
}

Result<std::vector<double>> Rope::factors(const char* name) const {
  const GgufTensor* tensor = file_.find(name);
  if (tensor == nullptr || tensor->type != GgmlType::f32 || tensor->elements != channels_ / 2) {
    return bad_input(
        fmt::format("{}: tensor {} must be F32 with {} elements, one for each pair of "
                    "channels that rotate",
                    file_.path(), name, channels_ / 2));
  }
  std::vector<double> out;
  for (int64_t i = 0; i < tensor->elements; ++i) {
    float value;
    std::memcpy(&value, tensor->data + 4 * i, sizeof(value));
    if (!std::isfinite(value) || value <= 0) {
      return bad_input(fmt::format("{}: tensor {} holds {}, which no frequency can be divided by",
                                   file_.path(), name, value));
    }
    out.push_back(value);
  }
  return out;
}

bool Rope::is_llama3(const std::vector<double>& divisors, double theta, const Llama3& rule) const {
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(channels_);
    const double expected = llama3_divisor(rule, 1.0 / std::pow(theta, exponent));
    if (std::fabs(divisors[i] - expected) > 1e-4 * expected) return false;
  }
  return true;
}

Status Rope::add_divisors(Json& rope) const {
  KVSWEEP_ASSIGN(const std::vector<double> divisors, factors("rope_freqs.weight"));
  const Llama3 rule{divisors.back(), 1.0, 4.0, 8192.0};
  const double theta = rope.at("rope_theta").get<double>();
  if (rule.factor > 1.0 && is_llama3(divisors, theta, rule)) {
    rope["rope_type"] = "llama3";
    rope["factor"] = rule.factor;
    rope["low_freq_factor"] = rule.low;
    rope["high_freq_factor"] = rule.high;
    rope["original_max_position_embeddings"] = 8192;
    return {};
  }
  rope["rope_type"] = "longrope";
  rope["short_factor"] = divisors;
  rope["long_factor"] = divisors;
  rope["attention_factor"] = 1.0;
  rope["original_max_position_embeddings"] = field("max_position_embeddings");
  return {};
}

Status Rope::add_long(Json& rope) const {
  KVSWEEP_ASSIGN(rope["long_factor"], factors("rope_factors_long.weight"));
  KVSWEEP_ASSIGN(rope["short_factor"], factors("rope_factors_short.weight"));
  KVSWEEP_ASSIGN(const int64_t original,
                 file_.integer(key("scaling.original_context_length"), 1, kMaxContext));
  rope["rope_type"] = "longrope";
  rope["original_max_position_embeddings"] = original;
  config_["original_max_position_embeddings"] = original;
  if (!file_.has(key("scaling.attn_factor"))) return {};
  KVSWEEP_ASSIGN(rope["attention_factor"], file_.number(key("scaling.attn_factor")));
  return {};
}

Status Rope::add_yarn(Json& rope) const {
  KVSWEEP_ASSIGN(const double attention, file_.number(key("scaling.attn_factor"), 1.0));
  if (attention != 1.0) {
    return file_.error(key("scaling.attn_factor"),
                       fmt::format("is {}; with yarn only 1 is supported", attention));
  }
  rope["rope_type"] = "yarn";
  KVSWEEP_ASSIGN(rope["factor"], file_.number(key("scaling.factor")));
  KVSWEEP_ASSIGN(rope["beta_fast"], file_.number(key("scaling.yarn_beta_fast"), 32.0));
  KVSWEEP_ASSIGN(rope["beta_slow"], file_.number(key("scaling.yarn_beta_slow"), 1.0));
  KVSWEEP_ASSIGN(rope["original_max_position_embeddings"],
                 file_.integer(key("scaling.original_context_length"), 1, kMaxContext,
                               field("max_position_embeddings")));
  return {};
}

// Without a type, a factor means linear scaling (llama.cpp reads files so, and older ones have
// rope.scale_linear).
Status Rope::add_scaling(Json& rope) const {
  const char* factor = file_.has(key("scaling.factor")) ? "scaling.factor" : "scale_linear";
  KVSWEEP_ASSIGN(const std::string type,
                 file_.text(key("scaling.type"), file_.has(key(factor)) ? "linear" : "none"));
  if (file_.find("rope_factors_long.weight") != nullptr) return add_long(rope);
  if (type != "none" && file_.find("rope_freqs.weight") != nullptr) {
    return file_.error(key("scaling.type"),
                       fmt::format("is \"{}\" beside a tensor rope_freqs.weight; only one of them "
                                   "is supported",
                                   type));
  }
  if (file_.find("rope_freqs.weight") != nullptr) return add_divisors(rope);
  if (type == "none") return {};
  if (type == "yarn") return add_yarn(rope);
  if (type == "linear") {
    KVSWEEP_ASSIGN(const double stretch, file_.number(key(factor), 1.0));
    if (stretch <= 0) {
      return file_.error(key(factor), fmt::format("is {}; it must be above zero", stretch));
    }
    if (stretch == 1.0) return {};
    rope["rope_type"] = "linear";
    rope["factor"] = stretch;
    return {};
  }
  return file_.error(
      key("scaling.type"),
      fmt::format("is \"{}\"; supported are none, linear, yarn and, with its tensors, "
                  "longrope",
                  type));
}

Status Rope::add() {
  const int64_t head_dim = field("head_dim");
  KVSWEEP_ASSIGN(channels_, file_.integer(key("dimension_count"), 2, head_dim, head_dim));
  const bool gemma3 = name_ == "gemma3";
  Json rope = {{"rope_type", "default"}};
  KVSWEEP_ASSIGN(const double theta, file_.number(key("freq_base"), gemma3 ? 1e6 : 1e4));
  if (theta <= 0) {
    return file_.error(key("freq_base"), fmt::format("is {}; it must be above zero", theta));
  }
  rope["rope_theta"] = theta;
  KVSWEEP_TRY(add_partial(rope));
  KVSWEEP_TRY(add_scaling(rope));
  if (!gemma3) {
    config_["rope_parameters"] = std::move(rope);
    return {};
  }
  // Layers with a window have a base of their own and no scaling.
  KVSWEEP_ASSIGN(const double local, file_.number(key("freq_base_swa"), 1e4));
  config_["rope_parameters"] = {
      {"full_attention", std::move(rope)},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", local}}}};
  return {};
}

}  // namespace

Status add_gguf_rope(const GgufFile& file, const std::string& architecture, Json& config) {
  return Rope(file, architecture, config).add();
}

}  // namespace kvsweep
