// Scheme: a named recipe that fixes everything about a cache but the bits. A scheme defines its
// *view*: which tokens a query sees coded and which exact (design §4.6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.hpp"
#include "core/json.hpp"
#include "core/ranges.hpp"
#include "core/result.hpp"
#include "core/window.hpp"

namespace kvsweep {

// Which prompt tokens the queries of the prompt see coded.
//   stepwise  the same rule as while decoding, so chunked, batched and step-by-step runs agree
//   exact     prompt queries see the originals (KIVI, KVmix and KVTuner as published)
enum class Prefill : uint8_t { stepwise, exact };
std::string_view to_string(Prefill prefill);
Result<Prefill> prefill_from(std::string_view name);

// Which rows are rotated by a Hadamard matrix over head_dim before they are coded.
enum class Hadamard : uint8_t { none, keys, values, both };
std::string_view to_string(Hadamard hadamard);
Result<Hadamard> hadamard_from(std::string_view name);

// Whether coded keys hold the bias of the key projection. RoPE is linear, so a key is
// RoPE(W x, p) + RoPE(b, p): `factored` stores the first term and attention adds the second, which
// depends on the position alone.
enum class KeyBias : uint8_t { none, factored };
std::string_view to_string(KeyBias bias);
Result<KeyBias> key_bias_from(std::string_view name);

// What a gene of a scheme may choose beside the base type.
enum class SchemeCodecs : uint8_t { any, integers, fp8 };

struct SchemeInfo {
  std::string_view name;
  Axis k_axis;
  Axis v_axis;
  int group;
  WindowRule window;
  int residual;
  Prefill prefill;
  SchemeCodecs codecs;
  Arithmetic arithmetic;
  std::string_view summary;

  // Reproduces published code: simulated and slow, for comparisons, with no options of ours.
  bool reference() const { return arithmetic != Arithmetic::native; }
  // Whether `residual` is an option of it.
  bool counts_tokens() const {
    return window == WindowRule::tokens || window == WindowRule::recode;
  }
};
const std::vector<SchemeInfo>& schemes();
bool is_reference_scheme(std::string_view name);  // false for a name that no scheme has

// A scheme with every option settled. Made by make_scheme alone, which checks the options; the
// default is per-token as it is in the table.
struct Scheme {
  std::string name = "per-token";
  int group = 0;     // elements that share parameters, of both sides; 0 = head
  int residual = 0;  // newest tokens that stay exact (WindowRule::tokens), or come between two
                     // codings (recode: at least 2, since the first new token never causes one)
  int share = 0;     // tenths that stay exact (the other rules); 0 = what the codec's bits say
  int sinks = 0;     // first tokens that stay exact
  Prefill prefill = Prefill::stepwise;
  bool symmetric = false;
  Hadamard hadamard = Hadamard::none;
  KeyBias key_bias = KeyBias::none;
  Ranges ranges;  // of calibrated constants; empty: codecs store their scales

  const SchemeInfo& info() const;
  Axis key_axis() const { return info().k_axis; }
  Axis value_axis() const { return info().v_axis; }
  Format key_format(Codec codec) const;
  Format value_format(Codec codec) const;
  Window key_window(Codec codec) const;
  Window value_window(Codec codec) const;
  int page_tokens() const;  // tokens per cache page: 64, or 128 when a channel group is 128

  // Empty, or why a pair cannot be stored under this scheme: "keys are coded per channel, which
  // fp8_e4m3 is not made for".
  std::string objection(Pair pair) const;

  friend bool operator==(const Scheme&, const Scheme&) = default;
};

// What a user may set; nothing set = the defaults of schemes.def.
struct SchemeOptions {
  std::string name = "per-token";
  std::optional<int> group;     // 32 | 64 | 128 | 0 (= head), both sides; a side on the channel
                                // axis cannot use head
  std::optional<int> residual;  // tokens; a multiple of the group when keys are per channel (its
                                // default is then raised to one group)
  std::optional<int> share;     // tenths, 1 .. 9, of schemes whose window is a share
  std::optional<int> sinks;     // tokens, 0 .. kMaxSinks
  std::optional<Prefill> prefill;
  std::optional<bool> symmetric;  // integer codes without an offset
  std::optional<Hadamard> hadamard;
  std::optional<KeyBias> key_bias;  // of keys that are coded; the model must have such a bias
  std::optional<Ranges> ranges;     // calibrated constants for the codecs that take them

  friend bool operator==(const SchemeOptions&, const SchemeOptions&) = default;
};
inline constexpr int kMaxSinks = 64;

// Error (bad_input) names the value, the allowed ones and the nearest scheme.
Result<Scheme> make_scheme(const SchemeOptions& options);
// bad_input names an option that no map of these pairs could depend on: it would only give the same
// maps other names. `head_dim`: channels of the longest head, or 0 when the model is not known.
Status check_options_matter(const SchemeOptions& options, const std::vector<Pair>& pairs,
                            int head_dim = 0);

// The pairs that a group may take when a study names none: the widths 8, 4 and 2 of both sides, or
// what the scheme has instead, and the base type.
std::vector<Pair> default_candidates(const Scheme& scheme);

// "kivi, group 32, residual 32, prefill exact", with what else is set; ends in ", simulated" for a
// reference scheme.
std::string described(const Scheme& scheme);

// Takes from a ranges file what the other options ask for. Errors as choose.
Status set_ranges(const ObservedRanges& observed, SchemeOptions& options);

// The options that make this scheme, all set that it has.
SchemeOptions options_of(const Scheme& scheme);

// {"name": "kivi", "group": 32, "residual": 32, "share_tenths": .., "sinks": .., "prefill": ..,
// "symmetric": .., "hadamard": .., "key_bias": .., "ranges": ..}: the options that are set, group 0
// for head. The same form in specs as they are stored, in the database and over the wire.
Json to_json(const SchemeOptions& options);
Result<SchemeOptions> scheme_options_from_json(const Json& json);

}  // namespace kvsweep
