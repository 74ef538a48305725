#include "store/export/policy_json.hpp"

#include <cmath>

#include "core/json_reader.hpp"

namespace kvsweep::store {

namespace {

constexpr int64_t kMaxTokens = 1 << 20;

std::string rule_name(WindowRule rule) {
  if (rule == WindowRule::recode) return "recode";
  return rule == WindowRule::window_share ? "window_share" : "total_share";
}

// What happens to a token that was coded: nothing, except in KVTuner's schemes.
std::string requant_name(const Scheme& scheme) {
  return scheme.info().window == WindowRule::recode ? "whole-history" : "append-only";
}

OrderedJson side_json(Axis axis, int group, const Window& window) {
  OrderedJson side;
  side["axis"] = to_string(axis);
  side["group"] = group_json(group);
  if (window.rule == WindowRule::tokens) {
    side["keep"] = window.keep;
  } else {
    side["rule"] = rule_name(window.rule);
  }
  side["block"] = window.block;
  return side;
}

// The windows of a codec stand for those of all: only shares differ, which `share` says.
OrderedJson scheme_json(const Scheme& scheme) {
  OrderedJson json;
  json["name"] = scheme.name;
  if (scheme.share > 0) json["share"] = scheme.share / 10.0;
  if (scheme.symmetric) json["symmetric"] = true;
  if (scheme.hadamard != Hadamard::none) json["hadamard"] = to_string(scheme.hadamard);
  if (scheme.key_bias != KeyBias::none) json["key_bias"] = to_string(scheme.key_bias);
  if (!scheme.ranges.empty()) json["ranges"] = OrderedJson(to_json(scheme.ranges));
  json["keys"] = side_json(scheme.key_axis(), scheme.group, scheme.key_window(Codec::int8));
  json["values"] = side_json(scheme.value_axis(), scheme.group, scheme.value_window(Codec::int8));
  return json;
}

// The options that the file states, of which make_scheme must make what the file describes.
Result<SchemeOptions> read_options(const Json& json, const Policy& policy,
                                   const std::string& where) {
  JsonReader reader(json, where);
  SchemeOptions options;
  options.name = reader.string("name", 64);
  if (const auto share = reader.optional_number("share", 0.1, 0.9)) {
    options.share = static_cast<int>(std::lround(*share * 10));
  }
  if (reader.has("symmetric")) options.symmetric = reader.boolean("symmetric");
  if (const auto hadamard = reader.optional_string("hadamard", 16)) {
    options.hadamard = reader.take(hadamard_from(*hadamard));
  }
  if (const auto bias = reader.optional_string("key_bias", 16)) {
    options.key_bias = reader.take(key_bias_from(*bias));
  }
  if (const Json* ranges = reader.object("ranges", true)) {
    options.ranges = reader.take(ranges_from_json(*ranges, where + ".ranges"));
  }
  const Json* keys = reader.object("keys");
  (void)reader.object("values");
  KVSWEEP_TRY(reader.done());
  options.group = reader.take(read_group(keys->value("group", Json()), where + ".keys"));
  KVSWEEP_TRY(reader.done());
  options.residual = policy.residual;
  options.sinks = policy.sinks;
  options.prefill = policy.prefill;
  return options;
}

Result<Scheme> read_scheme(const Json& json, const Policy& policy, const std::string& where) {
  KVSWEEP_TRY(check_keys(
      json, {"name", "share", "symmetric", "hadamard", "key_bias", "ranges", "keys", "values"},
      where));
  KVSWEEP_ASSIGN(const SchemeOptions options, read_options(json, policy, where));
  const Result<Scheme> made = make_scheme(options);
  if (!made.ok()) return bad_input(where + ": " + made.error().message);
  const OrderedJson here = scheme_json(*made);
  for (const char* side : {"keys", "values"}) {
    if (Json(here[side]) == json[side]) continue;
    return bad_input(where + ": this version cannot run scheme " + options.name + " with " + side +
                     " " + json[side].dump() + "; here the scheme has " + here[side].dump());
  }
  return *made;
}

}  // namespace

OrderedJson group_json(int group) {
  return group == 0 ? OrderedJson("head") : OrderedJson(group);
}

OrderedJson policy_json(const Scheme& scheme, BaseType base) {
  OrderedJson policy;
  policy["residual_tokens"] = scheme.residual;
  policy["sink_tokens"] = scheme.sinks;
  policy["prefill_quantized"] = scheme.prefill == Prefill::stepwise;
  policy["requant"] = requant_name(scheme);
  policy["baseline_kv"] = to_string(base);
  policy["scheme"] = scheme_json(scheme);
  return policy;
}

Result<int> read_group(const Json& value, const std::string& where) {
  if (value == "head") return 0;
  if (value.is_number_integer()) {
    for (const int group : {32, 64, 128}) {
      if (value == group) return group;
    }
  }
  return bad_input(where + ": \"group\" is " + (value.is_null() ? "missing" : shown(value)) +
                   "; allowed are 32, 64, 128 and \"head\"");
}

Result<Axis> read_axis(const std::string& name, const std::string& where) {
  for (const Axis axis : {Axis::token, Axis::channel}) {
    if (to_string(axis) == name) return axis;
  }
  return bad_input(where + ": \"axis\" is \"" + name + "\"; allowed are token and channel");
}

Result<Policy> read_policy(const Json& json, const std::string& where) {
  KVSWEEP_TRY(check_keys(
      json,
      {"residual_tokens", "sink_tokens", "prefill_quantized", "requant", "baseline_kv", "scheme"},
      where));
  JsonReader reader(json, where);
  Policy policy;
  policy.residual = static_cast<int>(reader.integer("residual_tokens", 0, kMaxTokens));
  policy.prefill = reader.boolean("prefill_quantized") ? Prefill::stepwise : Prefill::exact;
  policy.sinks = static_cast<int>(reader.optional_integer("sink_tokens", 0, kMaxSinks).value_or(0));
  const auto requant = reader.optional_string("requant", 64);
  if (const auto base = reader.optional_string("baseline_kv", 16)) {
    policy.base = reader.take(base_type_from(*base));
  }
  const Json* scheme = reader.object("scheme", true);
  KVSWEEP_TRY(reader.done());
  if (scheme != nullptr) {
    KVSWEEP_ASSIGN(policy.scheme, read_scheme(*scheme, policy, where + ".scheme"));
  }
  const std::string here = policy.scheme ? requant_name(*policy.scheme) : "append-only";
  if (requant && *requant != here) {
    return bad_input(where + ": \"requant\" is \"" + *requant +
                     "\"; under the scheme of the file " + "this version codes " +
                     (here == "append-only" ? "a token once" : "all tokens again") + " (" + here +
                     ")");
  }
  return policy;
}

}  // namespace kvsweep::store
