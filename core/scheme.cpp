#include "core/scheme.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace kvsweep {
namespace {

constexpr int kMaxResidual = 8192;  // tokens; beyond it nothing of a usual context is coded

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const SchemeInfo& scheme : schemes()) names.emplace_back(scheme.name);
  return names;
}

Result<SchemeInfo> find_scheme(const std::string& name) {
  for (const SchemeInfo& scheme : schemes()) {
    if (scheme.name == name) return scheme;
  }
  const std::string near = nearest_word(name, scheme_names());
  return bad_input("scheme \"" + name + "\" is not known; allowed are " +
                   join(scheme_names(), ", ") +
                   (near.empty() ? "" : " (did you mean " + near + "?)"));
}

Status check_group(const SchemeInfo& scheme, int group) {
  if (group != 0 && group != 32 && group != 64 && group != 128) {
    return bad_input("group " + std::to_string(group) +
                     " is not known; allowed are 32, 64, 128 and head");
  }
  const bool channel = scheme.k_axis == Axis::channel || scheme.v_axis == Axis::channel;
  if (channel && group == 0) {
    return bad_input("scheme " + std::string(scheme.name) +
                     " cannot use `group: head`: a side coded per channel groups tokens, so its "
                     "group must be 32, 64 or 128");
  }
  return {};
}

Status check_residual(const SchemeInfo& scheme, int residual, int group) {
  if (residual < 0 || residual > kMaxResidual) {
    return bad_input("residual " + std::to_string(residual) + " is out of range; it must be 0 to " +
                     std::to_string(kMaxResidual) + " tokens");
  }
  if (scheme.k_axis == Axis::channel && (residual == 0 || residual % group != 0)) {
    return bad_input("residual " + std::to_string(residual) + " does not fit scheme " +
                     std::string(scheme.name) + " with group " + std::to_string(group) +
                     ": keys are coded in whole groups of tokens, so it must be a positive "
                     "multiple of the group");
  }
  return {};
}

// The default of the table, raised to a whole group where keys are coded per channel.
int default_residual(const SchemeInfo& scheme, int group) {
  if (scheme.k_axis != Axis::channel) return scheme.residual;
  return std::max(1, (scheme.residual + group - 1) / group) * group;
}

// Tokens per channel code in whole blocks of `residual` (KIVI flushes its key residual at once
// when it is full); a side coded per token keeps `residual` tokens exact and codes one per step.
// KIVI keeps exactly `residual` values besides the one of the current step.
Window key_window(const SchemeInfo& scheme, int residual) {
  if (scheme.k_axis == Axis::channel) return {1, residual};
  return {residual, 1};
}

Window value_window(const SchemeInfo& scheme, int residual) {
  if (scheme.k_axis == Axis::channel) return {residual + 1, 1};
  return {residual, 1};
}

}  // namespace

const std::vector<SchemeInfo>& schemes() {
  static const std::vector<SchemeInfo> kTable = {
#define KVSWEEP_SCHEME(id, name, k_axis, v_axis, group, residual, prefill, summary) \
  {name, Axis::k_axis, Axis::v_axis, group, residual, Prefill::prefill, summary},
#include "core/catalog/schemes.def"
#undef KVSWEEP_SCHEME
  };
  return kTable;
}

std::string_view to_string(Prefill prefill) {
  return prefill == Prefill::stepwise ? "stepwise" : "exact";
}

Result<Prefill> prefill_from(std::string_view name) {
  if (name == "stepwise") return Prefill::stepwise;
  if (name == "exact") return Prefill::exact;
  return bad_input("prefill \"" + std::string(name) +
                   "\" is not known; allowed are stepwise and exact");
}

int64_t coded_tokens(const Window& window, int64_t position) {
  const int64_t beyond = std::max<int64_t>(0, position + 1 - window.keep);
  return beyond / window.block * window.block;
}

Format Scheme::key_format(Codec codec) const {
  if (codec == Codec::base) return {};
  return {codec, k_axis, k_group, false};
}

Format Scheme::value_format(Codec codec) const {
  if (codec == Codec::base) return {};
  return {codec, v_axis, v_group, false};
}

int Scheme::page_tokens() const {
  const bool long_groups =
      (k_axis == Axis::channel && k_group == 128) || (v_axis == Axis::channel && v_group == 128);
  return long_groups ? 128 : 64;
}

Result<Scheme> make_scheme(const SchemeOptions& options) {
  KVSWEEP_ASSIGN(const SchemeInfo info, find_scheme(options.name));
  const int group = options.group.value_or(info.group);
  KVSWEEP_TRY(check_group(info, group));
  const int residual = options.residual.value_or(default_residual(info, group));
  KVSWEEP_TRY(check_residual(info, residual, group));

  Scheme scheme;
  scheme.name = info.name;
  scheme.k_axis = info.k_axis;
  scheme.v_axis = info.v_axis;
  scheme.k_group = group;
  scheme.v_group = group;
  scheme.k = key_window(info, residual);
  scheme.v = value_window(info, residual);
  scheme.residual = residual;
  scheme.prefill = options.prefill.value_or(info.prefill);
  return scheme;
}

}  // namespace kvsweep
