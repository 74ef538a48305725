#include "core/scheme.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/reference_scheme.hpp"
#include "core/spec_limits.hpp"
#include "core/text.hpp"

namespace kvsweep {
namespace {

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const SchemeInfo& scheme : schemes()) names.emplace_back(scheme.name);
  return names;
}

const SchemeInfo* find_scheme(std::string_view name) {
  for (const SchemeInfo& scheme : schemes()) {
    if (scheme.name == name) return &scheme;
  }
  return nullptr;
}

Error unknown_scheme(const std::string& name) {
  const std::string near = nearest_word(name, scheme_names());
  return bad_input("scheme \"" + name + "\" is not known; allowed are " +
                   join(scheme_names(), ", ") +
                   (near.empty() ? "" : " (did you mean " + near + "?)"));
}

Error out_of_range(const std::string& option, int value, int most, const std::string& unit) {
  return bad_input(option + " " + std::to_string(value) + " is out of range; it must be 0 to " +
                   std::to_string(most) + " " + unit);
}

bool channel_keys(const SchemeInfo& scheme) {
  return scheme.k_axis == Axis::channel;
}

Status check_group(const SchemeInfo& scheme, int group) {
  if (group != 0 && group != 32 && group != 64 && group != 128) {
    return bad_input("group " + std::to_string(group) +
                     " is not known; allowed are 32, 64, 128 and head");
  }
  if (group == 0 && (channel_keys(scheme) || scheme.v_axis == Axis::channel)) {
    return bad_input("scheme " + std::string(scheme.name) +
                     " cannot use `group: head`: a side coded per channel groups tokens, so its "
                     "group must be 32, 64 or 128");
  }
  if (group != 0 && scheme.codecs == SchemeCodecs::fp8) {
    return bad_input("scheme " + std::string(scheme.name) +
                     " has one scale per token and head, "
                     "so its group can only be head, not " +
                     std::to_string(group));
  }
  return {};
}

Status check_residual(const SchemeInfo& scheme, const SchemeOptions& options, int residual,
                      int group) {
  if (!scheme.counts_tokens()) {
    if (!options.residual || *options.residual == 0) return {};
    return bad_input("scheme " + std::string(scheme.name) +
                     " keeps a share of the tokens exact, not a number of them; use `share` "
                     "instead of residual " +
                     std::to_string(*options.residual));
  }
  if (residual < 0 || residual > kMaxResidual) {
    return out_of_range("residual", residual, kMaxResidual, "tokens");
  }
  if (scheme.window == WindowRule::recode) return {};  // groups run over whatever is there
  if (channel_keys(scheme) && (residual == 0 || residual % group != 0)) {
    return bad_input("residual " + std::to_string(residual) + " does not fit scheme " +
                     std::string(scheme.name) + " with group " + std::to_string(group) +
                     ": keys are coded in whole groups of tokens, so it must be a positive "
                     "multiple of the group");
  }
  return {};
}

Status check_share(const SchemeInfo& scheme, const SchemeOptions& options) {
  if (!options.share) return {};
  if (scheme.counts_tokens()) {
    return bad_input("scheme " + std::string(scheme.name) +
                     " keeps a number of tokens exact, not a share of them; use `residual` "
                     "instead of `share`");
  }
  if (*options.share < 1 || *options.share > kMaxShare) {
    return bad_input("share " + std::to_string(*options.share) +
                     " tenths is out of range; it must be 0.1, 0.2 ... or 0.9");
  }
  return {};
}

Status check_variants(const SchemeInfo& scheme, const SchemeOptions& options) {
  const int sinks = options.sinks.value_or(0);
  if (sinks < 0 || sinks > kMaxSinks) return out_of_range("sinks", sinks, kMaxSinks, "tokens");
  if (options.symmetric.value_or(false) && scheme.codecs == SchemeCodecs::fp8) {
    return bad_input("scheme " + std::string(scheme.name) +
                     " cannot be symmetric: only integer codes have an offset to leave out");
  }
  if (options.ranges && scheme.codecs == SchemeCodecs::integers) {
    return bad_input("scheme " + std::string(scheme.name) +
                     " knows integer codes only, which take no calibrated constant; remove the "
                     "ranges");
  }
  return {};
}

// The default of the table, raised to a whole group where keys are coded per channel.
int default_residual(const SchemeInfo& scheme, int group) {
  if (!channel_keys(scheme) || scheme.window != WindowRule::tokens) return scheme.residual;
  return std::max(1, (scheme.residual + group - 1) / group) * group;
}

// KVmix keeps .3 of what it codes in 4 bits and .2 of what it codes in fewer (its utils); wider
// codes, which it does not have, are treated as 4.
int share_of(const Scheme& scheme, Codec codec) {
  if (scheme.share > 0) return scheme.share;
  return info(codec).bits <= 3 ? 2 : 3;
}

Window share_window(const Scheme& scheme, Codec codec) {
  return {0, scheme.group, scheme.info().window, share_of(scheme, codec)};
}

Format format_of(const Scheme& scheme, Codec codec, Axis axis, bool hadamard) {
  if (codec == Codec::base) return {};
  const CodecInfo& entry = info(codec);
  const int group = entry.group == kAnyGroup ? scheme.group : entry.group;
  const bool calibrated = !scheme.ranges.empty() && takes_constant(codec);
  return {codec, axis, group, scheme.symmetric && entry.integer(), hadamard, calibrated};
}

bool is_fp8(Codec codec) {
  return codec == Codec::fp8_e4m3 || codec == Codec::fp8_e5m2;
}

// Why a scheme cannot have this codec on a side; "" when it can.
std::string side_reason(const SchemeInfo& scheme, const char* side, Axis axis, Codec codec) {
  if (codec == Codec::base) return "";
  const std::string name(info(codec).name);
  if (scheme.codecs == SchemeCodecs::integers && !info(codec).integer()) {
    return "scheme " + std::string(scheme.name) + " knows integer codes only, not " + name;
  }
  if (scheme.codecs == SchemeCodecs::fp8 && !is_fp8(codec)) {
    return "scheme " + std::string(scheme.name) + " knows 8-bit floats only, not " + name;
  }
  if (!info(codec).takes(axis)) {
    return "scheme " + std::string(scheme.name) + " codes " + side + " per " +
           std::string(to_string(axis)) + ", which " + name + " is not made for";
  }
  return "";
}

std::string side_objection(const SchemeInfo& scheme, const char* side, Axis axis, Codec codec) {
  const std::string reason = side_reason(scheme, side, axis, codec);
  if (reason.empty()) return "";
  std::vector<std::string> allowed;
  for (const CodecInfo& entry : codecs()) {
    if (!side_reason(scheme, side, axis, entry.codec).empty()) continue;
    allowed.emplace_back(entry.label);
  }
  return reason + "; " + side + " may have " + join(allowed, ", ");
}

}  // namespace

const std::vector<SchemeInfo>& schemes() {
  static const std::vector<SchemeInfo> kTable = {
#define KVSWEEP_SCHEME(id, name, k_axis, v_axis, group, window, residual, prefill, codecs, \
                       arithmetic, text)                                                   \
  {name,                                                                                   \
   Axis::k_axis,                                                                           \
   Axis::v_axis,                                                                           \
   group,                                                                                  \
   WindowRule::window,                                                                     \
   residual,                                                                               \
   Prefill::prefill,                                                                       \
   SchemeCodecs::codecs,                                                                   \
   Arithmetic::arithmetic,                                                                 \
   text},
#include "core/catalog/schemes.def"
#undef KVSWEEP_SCHEME
  };
  return kTable;
}

bool is_reference_scheme(std::string_view name) {
  const SchemeInfo* found = find_scheme(name);
  return found != nullptr && found->reference();
}

const SchemeInfo& Scheme::info() const {
  const SchemeInfo* found = find_scheme(name);
  if (found == nullptr) throw std::logic_error("a scheme named " + name + " that nobody made");
  return *found;
}

Format Scheme::key_format(Codec codec) const {
  Format format =
      format_of(*this, codec, key_axis(), hadamard == Hadamard::keys || hadamard == Hadamard::both);
  format.unbiased = format.quantized() && key_bias == KeyBias::factored;
  return with_arithmetic(format, info().arithmetic, true);
}

Format Scheme::value_format(Codec codec) const {
  const Format format = format_of(*this, codec, value_axis(),
                                  hadamard == Hadamard::values || hadamard == Hadamard::both);
  return with_arithmetic(format, info().arithmetic, false);
}

// Tokens per channel code in whole blocks of `residual` (KIVI flushes its key residual at once
// when it is full); a side coded per token keeps `residual` tokens exact and codes one per step.
Window Scheme::key_window(Codec codec) const {
  if (info().window == WindowRule::recode) return recode_window(*this);
  if (info().window != WindowRule::tokens) {
    Window window = share_window(*this, codec);
    if (key_format(codec).arithmetic == Arithmetic::pack11) window.block = kPackedTokens;
    return window;
  }
  if (key_axis() == Axis::channel) return {1, residual};
  return {residual, 1};
}

// KIVI keeps exactly `residual` values besides the one of the current step.
Window Scheme::value_window(Codec codec) const {
  if (info().window == WindowRule::recode) return recode_window(*this);
  if (info().window != WindowRule::tokens) return share_window(*this, codec);
  const int current = key_axis() == Axis::channel ? 1 : 0;
  return {residual + current, 1};
}

int Scheme::page_tokens() const {
  const bool channel = key_axis() == Axis::channel || value_axis() == Axis::channel;
  return channel && group == 128 ? 128 : 64;
}

std::string Scheme::objection(Pair pair) const {
  if (const std::string why = reference_objection(info(), pair); !why.empty()) return why;
  const std::string keys = side_objection(info(), "keys", key_axis(), pair.k);
  return keys.empty() ? side_objection(info(), "values", value_axis(), pair.v) : keys;
}

Result<Scheme> make_scheme(const SchemeOptions& options) {
  const SchemeInfo* info = find_scheme(options.name);
  if (info == nullptr) return unknown_scheme(options.name);
  const int group = options.group.value_or(info->group);
  KVSWEEP_TRY(check_group(*info, group));
  const int residual = options.residual.value_or(default_residual(*info, group));
  KVSWEEP_TRY(check_residual(*info, options, residual, group));
  KVSWEEP_TRY(check_share(*info, options));
  KVSWEEP_TRY(check_variants(*info, options));
  KVSWEEP_TRY(check_reference(*info, options));

  Scheme scheme;
  scheme.name = info->name;
  scheme.group = group;
  scheme.residual = residual;
  scheme.share = options.share.value_or(0);
  scheme.sinks = options.sinks.value_or(0);
  scheme.prefill = options.prefill.value_or(info->prefill);
  scheme.symmetric = options.symmetric.value_or(false);
  scheme.hadamard = options.hadamard.value_or(Hadamard::none);
  scheme.key_bias = options.key_bias.value_or(KeyBias::none);
  scheme.ranges = options.ranges.value_or(Ranges{});
  return scheme;
}

std::vector<Pair> default_candidates(const Scheme& scheme) {
  std::vector<Codec> sides = {Codec::int2, Codec::int4, Codec::int8};
  if (scheme.info().codecs == SchemeCodecs::fp8) sides = {Codec::fp8_e4m3, Codec::base};
  std::vector<Pair> pairs;
  for (const Codec k : sides) {
    for (const Codec v : sides) pairs.push_back({k, v});
  }
  if (sides.back() != Codec::base) pairs.push_back({});
  return pairs;
}

Status check_options_matter(const SchemeOptions& options, const std::vector<Pair>& pairs,
                            int head_dim) {
  KVSWEEP_ASSIGN(const Scheme scheme, make_scheme(options));
  const bool counts_tokens = channel_keys(scheme.info()) || scheme.value_axis() == Axis::channel;
  bool grouped = counts_tokens;
  bool integer = false;
  for (const Pair& pair : pairs) {
    for (const Codec codec : {pair.k, pair.v}) {
      grouped = grouped || (codec != Codec::base && info(codec).group == kAnyGroup);
      integer = integer || (codec != Codec::base && info(codec).integer());
    }
  }
  if (!grouped && options.group && *options.group != scheme.info().group) {
    return bad_input(
        "group has no effect: no pair has codes in groups of a size that can be chosen (floats "
        "have groups of their own); leave it out, or take pairs of integer codes");
  }
  if (!counts_tokens && head_dim > 0 && scheme.group > head_dim) {
    return bad_input("group " + std::to_string(scheme.group) + " is longer than the " +
                     std::to_string(head_dim) +
                     " channels of a head; use `group: head`, which is the same and has a name of "
                     "its own");
  }
  if (!integer && options.symmetric.value_or(false)) {
    return bad_input(
        "symmetric has no effect: no pair has integer codes, and only those have an offset to "
        "leave out; leave it out, or take pairs of integer codes");
  }
  return {};
}

Status set_ranges(const ObservedRanges& observed, SchemeOptions& options) {
  const Hadamard hadamard = options.hadamard.value_or(Hadamard::none);
  const RangeChoice choice{hadamard == Hadamard::keys || hadamard == Hadamard::both,
                           hadamard == Hadamard::values || hadamard == Hadamard::both,
                           options.key_bias == KeyBias::factored};
  KVSWEEP_ASSIGN(options.ranges, choose(observed, choice));
  return {};
}

}  // namespace kvsweep
