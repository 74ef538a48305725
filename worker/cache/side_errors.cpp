// What a numerics failure says. Off the fast path: rows are searched again for the culprit.
#include <cmath>
#include <cstdio>
#include <string>

#include "worker/cache/side.hpp"

namespace kvsweep::cache {
namespace {

std::string number(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", static_cast<double>(value));
  return text;
}

std::string place(const SideName& name, int head, int64_t token) {
  return "layer " + std::to_string(name.layer) + ", KV head " + std::to_string(head) + ", token " +
         std::to_string(token) + ": the " + (name.values ? "value" : "key");
}

}  // namespace

Error Side::not_finite(const float* rows, int64_t first_token) const {
  const kernels::CpuOps& ops = kernels::cpu_ops();
  for (int64_t i = 0;; ++i) {
    uint32_t rounded = 0;
    if (ops.narrow(element_, rows + i, 1, &rounded)) continue;
    const int64_t row = i / layout_->head_dim;
    const int head = static_cast<int>(row % layout_->kv_heads);
    const std::string where =
        place(name_, layout_->first_head + head, first_token + row / layout_->kv_heads);
    if (!std::isfinite(rows[i])) {
      return {ErrorCode::numerics, where + " is " + number(rows[i]) +
                                       ", not a finite number; the model overflows on this prompt"};
    }
    return {ErrorCode::numerics, where + " is " + number(rows[i]) + ", beyond the range of " +
                                     std::string(to_string(base_)) +
                                     "; choose a wider baseline_kv (bf16 or fp32)"};
  }
}

Error Side::fault(const codec::EncodeResult& result, int64_t token, int head) const {
  const std::string where = place(name_, layout_->first_head + head, token + result.token) +
                            " is " + number(result.value) + " in channel " +
                            std::to_string(result.channel);
  const std::string advice = "; keep this layer in the baseline type";
  const std::string format = to_string(layout_->format);
  switch (result.fault) {
    case codec::Fault::scale_missing:
      return {ErrorCode::internal,
              format + " needs a calibrated scale, and " + number(result.value) + " is none"};
    case codec::Fault::offset_range:
      return {ErrorCode::numerics, where + ", and the minimum of its group in " + format +
                                       " must lie within +-65504" + advice};
    case codec::Fault::scale_range:
      return {ErrorCode::numerics, where + ", and the step of its group in " + format +
                                       " must not exceed 65504" + advice};
    default:
      return {ErrorCode::numerics, where + ", not a finite number"};
  }
}

}  // namespace kvsweep::cache
