// Scheme: a named recipe that fixes everything about a cache but the bits. A scheme defines its
// *view*: which tokens a query sees coded and which exact (design §4.6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.hpp"
#include "core/result.hpp"

namespace kvsweep {

// Which prompt tokens the queries of the prompt see coded.
//   stepwise  the same rule as while decoding, so chunked, batched and step-by-step runs agree
//   exact     prompt queries see the originals (KIVI, KVmix and KVTuner as published)
enum class Prefill : uint8_t { stepwise, exact };
std::string_view to_string(Prefill prefill);
Result<Prefill> prefill_from(std::string_view name);

// When tokens of one side turn into codes. The query at position p (0-based) sees the tokens
// j < coded_tokens(window, p) coded, and those from there to p, itself included, exact:
//     coded(p) = floor(max(0, p + 1 - keep) / block) * block
// Worked example, keep = 1, block = 32 (KIVI keys, residual 32): p = 31 -> 0, p = 32 -> 32,
// p = 63 -> 32, p = 64 -> 64. keep = 33, block = 1 (KIVI values): p = 32 -> 0, p = 33 -> 1.
// keep = 0, block = 1 (per-token): p -> p + 1, even the query's own token is coded.
// At most keep + block - 1 tokens are exact at once: the capacity of the staging buffer.
struct Window {
  int keep = 0;
  int block = 1;
  int staging_tokens() const { return keep + block - 1; }
  friend bool operator==(const Window&, const Window&) = default;
};
int64_t coded_tokens(const Window& window, int64_t position);

// A scheme after its options are applied. `k`/`v` windows hold for quantized sides only;
// a side stored in the base type has no staging.
struct Scheme {
  std::string name;  // of schemes.def
  Axis k_axis = Axis::token;
  Axis v_axis = Axis::token;
  int k_group = 0;  // 0 = head
  int v_group = 0;
  Window k;
  Window v;
  int residual = 0;  // the option it was made from
  Prefill prefill = Prefill::stepwise;

  Format key_format(Codec codec) const;
  Format value_format(Codec codec) const;
  int page_tokens() const;  // tokens per cache page: 64, or 128 when a channel group is 128

  friend bool operator==(const Scheme&, const Scheme&) = default;
};

// What a user may set; nothing set = the defaults of schemes.def.
struct SchemeOptions {
  std::string name = "per-token";
  std::optional<int> group;     // 32 | 64 | 128 | 0 (= head), both sides; a side on the channel
                                // axis cannot use head
  std::optional<int> residual;  // tokens; a multiple of the group when keys are per channel (its
                                // default is then raised to one group)
  std::optional<Prefill> prefill;
};

// Error (bad_input) names the value, the allowed ones and the nearest scheme.
Result<Scheme> make_scheme(const SchemeOptions& options);

struct SchemeInfo {
  std::string_view name;
  Axis k_axis;
  Axis v_axis;
  int group;
  int residual;
  Prefill prefill;
  std::string_view summary;
};
const std::vector<SchemeInfo>& schemes();

}  // namespace kvsweep
