// The policy object of a kvmap (and of KVTuner's sidecar): everything of a scheme that is not a
// layer's format. Internal to store/export.
//
//   {"residual_tokens": 32, "sink_tokens": 0, "prefill_quantized": false, "requant": "append-only",
//    "baseline_kv": "fp16",
//    "scheme": {"name": "kivi", "keys": {"axis": "channel", "group": 32, "keep": 1, "block": 32},
//               "values": {"axis": "token", "group": 32, "keep": 33, "block": 1}}}
//
// prefill_quantized false: prompt queries see the originals (Prefill::exact). keep and block: the
// window of core/window.hpp; `rule` instead of keep where a share stays exact, with "share" (0.1 to
// 0.9) beside the name when it is not that of the bits. "symmetric", "hadamard", "key_bias" and
// "ranges" (core/ranges.hpp) when they are set. group "head": the whole head.
#pragma once

#include <optional>
#include <string>

#include "core/format.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "core/scheme.hpp"
#include "store/export/json_text.hpp"

namespace kvsweep::store {

OrderedJson policy_json(const Scheme& scheme, BaseType base);

OrderedJson group_json(int group);  // 32, or "head" for 0

struct Policy {
  int residual = 0;
  int sinks = 0;
  Prefill prefill = Prefill::stepwise;
  std::optional<BaseType> base;
  std::optional<Scheme> scheme;  // nullopt: another tool's file, whose formats imply it
};

// Errors (bad_input): re-quantization, which this version lacks; a scheme that
// make_scheme does not give, so that nothing here could run the map.
Result<Policy> read_policy(const Json& policy, const std::string& where);

Result<int> read_group(const Json& value, const std::string& where);
Result<Axis> read_axis(const std::string& name, const std::string& where);

}  // namespace kvsweep::store
