#include "store/export/policy_json.hpp"

#include "core/json_reader.hpp"

namespace kvsweep::store {

namespace {

constexpr int64_t kMaxTokens = 1 << 20;

OrderedJson side_json(Axis axis, int group, const Window& window) {
  OrderedJson side;
  side["axis"] = to_string(axis);
  side["group"] = group_json(group);
  side["keep"] = window.keep;
  side["block"] = window.block;
  return side;
}

struct Side {
  Axis axis = Axis::token;
  int group = 0;
  Window window;
};

Result<Side> read_side(const Json& json, const std::string& where) {
  KVSWEEP_TRY(check_keys(json, {"axis", "group", "keep", "block"}, where));
  JsonReader reader(json, where);
  Side side;
  side.axis = reader.take(read_axis(reader.string("axis", 16), where));
  side.group = reader.take(read_group(json.value("group", Json()), where));
  side.window.keep = static_cast<int>(reader.integer("keep", 0, kMaxTokens));
  side.window.block = static_cast<int>(reader.integer("block", 1, kMaxTokens));
  KVSWEEP_TRY(reader.done());
  return side;
}

std::string described(const Scheme& scheme) {
  const auto side = [](Axis axis, int group, const Window& window) {
    return std::string(to_string(axis)) + " axis, group " +
           (group == 0 ? "head" : std::to_string(group)) + ", keep " + std::to_string(window.keep) +
           ", block " + std::to_string(window.block);
  };
  return "keys: " + side(scheme.k_axis, scheme.k_group, scheme.k) +
         "; values: " + side(scheme.v_axis, scheme.v_group, scheme.v);
}

Result<Scheme> read_scheme(const Json& json, const Policy& policy, const std::string& where) {
  KVSWEEP_TRY(check_keys(json, {"name", "keys", "values"}, where));
  JsonReader reader(json, where);
  const std::string name = reader.string("name", 64);
  const Json* keys = reader.object("keys");
  const Json* values = reader.object("values");
  KVSWEEP_TRY(reader.done());
  KVSWEEP_ASSIGN(const Side k, read_side(*keys, where + ".keys"));
  KVSWEEP_ASSIGN(const Side v, read_side(*values, where + ".values"));
  const Scheme said{name,     k.axis,   v.axis,          k.group,       v.group,
                    k.window, v.window, policy.residual, policy.prefill};
  // The default groups of a scheme may differ between the sides; an option sets both.
  Result<Scheme> plain = make_scheme({name, std::nullopt, policy.residual, policy.prefill});
  if (plain.ok() && *plain == said) return said;
  Result<Scheme> grouped = make_scheme({name, k.group, policy.residual, policy.prefill});
  if (!grouped.ok()) return bad_input(where + ": " + grouped.error().message);
  if (*grouped == said) return said;
  return bad_input(where + ": this version cannot run scheme " + name + " with " + described(said) +
                   "; here the scheme has " + described(*grouped));
}

}  // namespace

OrderedJson group_json(int group) {
  return group == 0 ? OrderedJson("head") : OrderedJson(group);
}

OrderedJson policy_json(const Scheme& scheme, BaseType base) {
  OrderedJson policy;
  policy["residual_tokens"] = scheme.residual;
  policy["sink_tokens"] = 0;
  policy["prefill_quantized"] = scheme.prefill == Prefill::stepwise;
  policy["requant"] = "append-only";
  policy["baseline_kv"] = to_string(base);
  policy["scheme"] = {{"name", scheme.name},
                      {"keys", side_json(scheme.k_axis, scheme.k_group, scheme.k)},
                      {"values", side_json(scheme.v_axis, scheme.v_group, scheme.v)}};
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
  const int64_t sinks = reader.optional_integer("sink_tokens", 0, kMaxTokens).value_or(0);
  if (sinks != 0) {
    reader.fail("sink_tokens", "is " + std::to_string(sinks) +
                                   "; this version keeps no sink tokens exact, so it must be 0");
  }
  const std::string requant = reader.optional_string("requant", 64).value_or("append-only");
  if (requant != "append-only") {
    reader.fail("requant", "is \"" + requant + "\"; this version codes a token once (append-only)");
  }
  if (const auto base = reader.optional_string("baseline_kv", 16)) {
    policy.base = reader.take(base_type_from(*base));
  }
  const Json* scheme = reader.object("scheme", true);
  KVSWEEP_TRY(reader.done());
  if (scheme != nullptr) {
    KVSWEEP_ASSIGN(policy.scheme, read_scheme(*scheme, policy, where + ".scheme"));
  }
  return policy;
}

}  // namespace kvsweep::store
