#include "core/reference_scheme.hpp"

#include <algorithm>

namespace kvsweep {

// What is published has no such options, and codes its prompt after the prompt has seen itself.
Status check_reference(const SchemeInfo& scheme, const SchemeOptions& options) {
  if (!scheme.reference()) return {};
  const auto no = [&](const std::string& what) {
    return bad_input("scheme " + std::string(scheme.name) + " has no " + what +
                     ": it reproduces published code; leave the option out, or take one of the "
                     "schemes that are no reference (see `kvsweep list schemes`)");
  };
  if (options.sinks.value_or(0) != 0) return no("`sinks`");
  if (options.symmetric.value_or(false) && scheme.arithmetic == Arithmetic::pack11) {
    return no("symmetric form");
  }
  if (options.hadamard.value_or(Hadamard::none) != Hadamard::none) return no("`hadamard`");
  if (options.key_bias.value_or(KeyBias::none) != KeyBias::none) return no("`key_bias`");
  if (options.prefill.value_or(Prefill::exact) != Prefill::exact) return no("`prefill: stepwise`");
  return {};
}

// KVTuner's arithmetic is that of a whole scheme, KVmix's word that of 3-bit keys.
Format with_arithmetic(Format format, Arithmetic arithmetic, bool keys) {
  if (!format.quantized() || arithmetic == Arithmetic::native) return format;
  if (arithmetic != Arithmetic::pack11) {
    format.arithmetic = arithmetic;
  } else if (keys && format.codec == Codec::int3) {
    format.arithmetic = arithmetic;
    format.group = kPackedTokens;
  }
  return format;
}

std::string reference_objection(const SchemeInfo& scheme, Pair pair) {
  const std::string name(scheme.name);
  if (scheme.window == WindowRule::recode && (pair.k == Codec::int3 || pair.v == Codec::int3)) {
    return "scheme " + name + " knows int8, int4 and int2 only, not int3";
  }
  if (scheme.arithmetic == Arithmetic::pack11 && pair.v == Codec::int3) {
    return "scheme " + name + " knows int3 for keys only: the published code packs values by 32";
  }
  return "";
}

// KVTuner counts the tokens of its residual from the second on: with R = 0 it holds one all the
// same, and the second one flushes it.
Window recode_window(const Scheme& scheme) {
  return {0, std::max(2, scheme.residual), WindowRule::recode, 0};
}

}  // namespace kvsweep
