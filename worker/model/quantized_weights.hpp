// 4-bit weights of linear layers as AutoAWQ and AutoGPTQ (GPTQModel) store them, presented as the
// matrices that they stand for. Internal to worker/model.
//
// A layer X of `in` inputs and `out` outputs is X.qweight, X.qzeros, X.scales and, for GPTQ,
// X.g_idx; a word is 32 bits with 8 codes, lowest bits first. With groups of G inputs:
//   AWQ "gemm"  qweight [in, out / 8], qzeros [in / G, out / 8]: the codes of a word belong to the
//               outputs 0 2 4 6 1 3 5 7 of its eight (Lin et al. 2023; order of AutoAWQ's packing)
//   GPTQ        qweight [in / 8, out]: eight inputs of one output; qzeros [in / G, out / 8],
//   outputs
//               in order, holding the zero less one unless checkpoint_format is "gptq_v2"
//               (Frantar et al. 2022; AutoGPTQ's packing); g_idx [in] is the group of each input,
//               which with desc_act is not input / G
//   scales      [in / G, out]
//   W[o][i] = scale (code - zero), which fp32 holds exactly for scales of 16 bits
#pragma once

#include <memory>
#include <string>

#include "core/json.hpp"
#include "worker/model/weight_container.hpp"

namespace kvsweep::model {

struct QuantizationRule {
  enum class Method { none, awq, gptq };
  Method method = Method::none;
  int64_t group = 0;  // inputs; 0: one group
  bool zero_less_one = false;
};

// From quantization_config of a config.json; `path` names it. bad_input names the field and value
// that is not supported: another method, other bits, a packing that is not the one above, bits that
// differ between layers. None when the config has no quantization_config.
Result<QuantizationRule> read_quantization(const Json& config, const std::string& path);

// `inner` with X.weight [out, in] in the place of the parts of each quantized X. bad_input names
// the tensor: a part that is missing, of another type or shape.
Result<std::unique_ptr<WeightContainer>> quantized_weights(std::unique_ptr<WeightContainer> inner,
                                                           const QuantizationRule& rule);

}  // namespace kvsweep::model
