#include <fmt/format.h>

#include "core/json_reader.hpp"
#include "worker/model/config_fields.hpp"
#include "worker/model/quantized_weights.hpp"

namespace kvsweep::model {
namespace {

using Method = QuantizationRule::Method;

constexpr int64_t kMaxGroup = 1 << 20;

Result<Method> method_of(const ConfigFields& fields) {
  KVSWEEP_ASSIGN(const std::string name, fields.text("quant_method"));
  if (name == "awq") return Method::awq;
  if (name == "gptq") return Method::gptq;
  return fields.error("quant_method",
                      fmt::format("is \"{}\"; supported are \"awq\" and \"gptq\" with 4 bits, and "
                                  "unquantized weights (F32, F16, BF16)",
                                  name));
}

// A text that must be one of two.
Result<std::string> one_of(const ConfigFields& fields, const char* name, const char* usual,
                           const char* other) {
  KVSWEEP_ASSIGN(const std::string value, fields.text(name, usual));
  if (value == usual || value == other) return value;
  return fields.error(
      name, fmt::format("is \"{}\"; supported are \"{}\" and \"{}\"", value, usual, other));
}

Status read_awq(const ConfigFields& fields) {
  KVSWEEP_TRY(one_of(fields, "version", "gemm", "GEMM"));
  return {};
}

Status read_gptq(const ConfigFields& fields, const Json& json, QuantizationRule& rule) {
  KVSWEEP_ASSIGN(const std::string format, one_of(fields, "checkpoint_format", "gptq", "gptq_v2"));
  rule.zero_less_one = format == "gptq";
  const Json dynamic = json.value("dynamic", Json());
  if (!dynamic.is_null() && !dynamic.empty()) {
    return fields.error("dynamic", fmt::format("is {}; layers with settings of their own are not "
                                               "supported",
                                               shown(dynamic)));
  }
  return {};
}

}  // namespace

Result<QuantizationRule> read_quantization(const Json& config, const std::string& path) {
  QuantizationRule rule;
  const ConfigFields top(config, path);
  if (!top.has("quantization_config")) return rule;
  KVSWEEP_ASSIGN(const ConfigFields fields, top.object("quantization_config"));
  KVSWEEP_ASSIGN(rule.method, method_of(fields));
  KVSWEEP_ASSIGN(const int64_t bits, fields.integer("bits", 1, 64));
  if (bits != 4) {
    return fields.error("bits", fmt::format("is {}; only 4 is supported", bits));
  }
  KVSWEEP_ASSIGN(const int64_t group, fields.integer("group_size", -1, kMaxGroup, 128));
  if (group == 0) return fields.error("group_size", "is 0; it must be -1 or above 0");
  rule.group = group > 0 ? group : 0;
  if (rule.method == Method::awq) {
    KVSWEEP_TRY(read_awq(fields));
  } else {
    KVSWEEP_TRY(read_gptq(fields, config.at("quantization_config"), rule));
  }
  return rule;
}

}  // namespace kvsweep::model
