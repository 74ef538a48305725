// How schemes and their options are spelled: names, a description, JSON.
#include <array>
#include <string>

#include "core/json_reader.hpp"
#include "core/scheme.hpp"
#include "core/spec_limits.hpp"

namespace kvsweep {
namespace {

constexpr size_t kMaxWordBytes = 64;
constexpr std::array<std::string_view, 4> kHadamards = {"none", "keys", "values", "both"};
constexpr std::array<std::string_view, 2> kKeyBiases = {"none", "factored"};

}  // namespace

std::string_view to_string(Prefill prefill) {
  return prefill == Prefill::stepwise ? "stepwise" : "exact";
}

Result<Prefill> prefill_from(std::string_view name) {
  if (name == "stepwise") return Prefill::stepwise;
  if (name == "exact") return Prefill::exact;
  return bad_input("prefill \"" + std::string(name) +
                   "\" is not known; allowed are stepwise and exact");
}

std::string_view to_string(Hadamard hadamard) {
  return kHadamards[static_cast<size_t>(hadamard)];
}

Result<Hadamard> hadamard_from(std::string_view name) {
  for (size_t i = 0; i < kHadamards.size(); ++i) {
    if (kHadamards[i] == name) return static_cast<Hadamard>(i);
  }
  return bad_input("hadamard \"" + std::string(name) +
                   "\" is not known; allowed are none, keys, values and both");
}

std::string_view to_string(KeyBias bias) {
  return kKeyBiases[static_cast<size_t>(bias)];
}

Result<KeyBias> key_bias_from(std::string_view name) {
  for (size_t i = 0; i < kKeyBiases.size(); ++i) {
    if (kKeyBiases[i] == name) return static_cast<KeyBias>(i);
  }
  return bad_input("key_bias \"" + std::string(name) +
                   "\" is not known; allowed are none and factored");
}

std::string described(const Scheme& scheme) {
  std::string text =
      scheme.name + ", group " + (scheme.group == 0 ? "head" : std::to_string(scheme.group));
  if (scheme.info().counts_tokens()) {
    text += ", residual " + std::to_string(scheme.residual);
  } else if (scheme.share > 0) {
    text += ", share 0." + std::to_string(scheme.share);
  }
  if (scheme.sinks > 0) text += ", sinks " + std::to_string(scheme.sinks);
  if (scheme.symmetric) text += ", symmetric";
  if (scheme.hadamard != Hadamard::none) {
    text += ", hadamard " + std::string(to_string(scheme.hadamard));
  }
  if (scheme.key_bias != KeyBias::none) text += ", key bias factored";
  if (!scheme.ranges.empty()) text += ", calibrated";
  text += ", prefill " + std::string(to_string(scheme.prefill));
  return text + (scheme.info().reference() ? ", simulated" : "");
}

// What a scheme does not have stays out, so that a scheme of an older version reads the same.
SchemeOptions options_of(const Scheme& scheme) {
  SchemeOptions options;
  options.name = scheme.name;
  options.group = scheme.group;
  if (scheme.info().counts_tokens()) options.residual = scheme.residual;
  if (scheme.share > 0) options.share = scheme.share;
  if (scheme.sinks > 0) options.sinks = scheme.sinks;
  options.prefill = scheme.prefill;
  if (scheme.symmetric) options.symmetric = true;
  if (scheme.hadamard != Hadamard::none) options.hadamard = scheme.hadamard;
  if (scheme.key_bias != KeyBias::none) options.key_bias = scheme.key_bias;
  if (!scheme.ranges.empty()) options.ranges = scheme.ranges;
  return options;
}

Json to_json(const SchemeOptions& options) {
  Json json = {{"name", options.name}};
  if (options.group) json["group"] = *options.group;
  if (options.residual) json["residual"] = *options.residual;
  if (options.share) json["share_tenths"] = *options.share;
  if (options.sinks) json["sinks"] = *options.sinks;
  if (options.prefill) json["prefill"] = to_string(*options.prefill);
  if (options.symmetric) json["symmetric"] = *options.symmetric;
  if (options.hadamard) json["hadamard"] = to_string(*options.hadamard);
  if (options.key_bias) json["key_bias"] = to_string(*options.key_bias);
  if (options.ranges) json["ranges"] = to_json(*options.ranges);
  return json;
}

// An option that is not known would change what is measured, so it is refused.
Result<SchemeOptions> scheme_options_from_json(const Json& json) {
  JsonReader reader(json, "scheme");
  SchemeOptions options;
  constexpr std::array<std::string_view, 10> kKeys = {
      "name",    "group",     "residual", "share_tenths", "sinks",
      "prefill", "symmetric", "hadamard", "key_bias",     "ranges"};
  for (const auto& [key, value] : json.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      reader.fail(key, "is no option of a scheme that this version knows");
    }
  }
  options.name = reader.string("name", kMaxWordBytes);
  const auto integer = [&](std::string_view key, int most) -> std::optional<int> {
    const auto value = reader.optional_integer(key, 0, most);
    return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
  };
  options.group = integer("group", 128);
  options.residual = integer("residual", kMaxResidual);
  options.share = integer("share_tenths", kMaxShare);
  options.sinks = integer("sinks", kMaxSinks);
  if (const auto prefill = reader.optional_string("prefill", kMaxWordBytes)) {
    options.prefill = reader.take(prefill_from(*prefill));
  }
  if (reader.has("symmetric")) options.symmetric = reader.boolean("symmetric");
  if (const auto hadamard = reader.optional_string("hadamard", kMaxWordBytes)) {
    options.hadamard = reader.take(hadamard_from(*hadamard));
  }
  if (const auto bias = reader.optional_string("key_bias", kMaxWordBytes)) {
    options.key_bias = reader.take(key_bias_from(*bias));
  }
  if (const Json* ranges = reader.object("ranges", true)) {
    options.ranges = reader.take(ranges_from_json(*ranges, "scheme.ranges"));
  }
  KVSWEEP_TRY(reader.done());
  return options;
}

}  // namespace kvsweep
