#include "core/format.hpp"

#include <array>
#include <charconv>

#include "core/ranges.hpp"
#include "core/text.hpp"

namespace kvsweep {
namespace {

constexpr std::array<std::string_view, 3> kBaseTypes = {"fp32", "fp16", "bf16"};

// Group lengths that pages and kernels know, and that of pack11; 0 is the whole head.
constexpr std::array<std::string_view, 6> kGroups = {"head", "11", "16", "32", "64", "128"};

constexpr std::array<Arithmetic, 3> kReferences = {Arithmetic::kvtuner, Arithmetic::kvtuner_bf16,
                                                   Arithmetic::pack11};

Error unknown(const std::string& what, std::string_view value,
              const std::vector<std::string>& known, const std::string& near) {
  return bad_input(what + " \"" + std::string(value) + "\" is not known; allowed are " +
                   join(known, ", ") + (near.empty() ? "" : " (did you mean " + near + "?)"));
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const CodecInfo& codec : codecs()) names.emplace_back(codec.name);
  return names;
}

std::vector<std::string> pair_names() {
  std::vector<std::string> names;
  for (const CodecInfo& k : codecs()) {
    for (const CodecInfo& v : codecs()) names.push_back(to_string(Pair{k.codec, v.codec}));
  }
  return names;
}

}  // namespace

const std::vector<CodecInfo>& codecs() {
  static const std::vector<CodecInfo> kTable = {
#define KVSWEEP_CODEC(id, name, label, bits, axes, group, params, symmetric, summary) \
  {Codec::id, name, label, bits, CodecAxes::axes, group, params, symmetric, summary},
#include "core/catalog/codecs.def"
#undef KVSWEEP_CODEC
  };
  return kTable;
}

const CodecInfo& info(Codec codec) {
  return codecs().at(static_cast<size_t>(codec));
}

Result<Codec> codec_from(std::string_view name) {
  for (const CodecInfo& codec : codecs()) {
    if (codec.name == name) return codec.codec;
  }
  return unknown("codec", name, codec_names(), nearest_word(name, codec_names()));
}

std::string_view to_string(BaseType type) {
  return kBaseTypes[static_cast<size_t>(type)];
}

Result<BaseType> base_type_from(std::string_view name) {
  for (size_t i = 0; i < kBaseTypes.size(); ++i) {
    if (kBaseTypes[i] == name) return static_cast<BaseType>(i);
  }
  const std::vector<std::string> known(kBaseTypes.begin(), kBaseTypes.end());
  return unknown("baseline KV type", name, known, nearest_word(name, known));
}

int bytes_of(BaseType type) {
  return type == BaseType::fp32 ? 4 : 2;
}

std::string_view to_string(Axis axis) {
  return axis == Axis::token ? "token" : "channel";
}

std::string_view to_string(Arithmetic arithmetic) {
  constexpr std::array<std::string_view, 4> kNames = {"native", "kvtuner", "kvtuner-bf16",
                                                      "11pack"};
  return kNames[static_cast<size_t>(arithmetic)];
}

int param_bytes(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kvtuner ? 8 : 4;
}

std::string to_string(const Format& format) {
  std::string text(info(format.codec).name);
  if (!format.quantized()) return text;
  text += "-";
  text += to_string(format.axis);
  text += "-g" + (format.group == 0 ? std::string("head") : std::to_string(format.group));
  if (format.symmetric) text += "-sym";
  if (format.hadamard) text += "-had";
  if (format.calibrated) text += "-cal";
  if (format.unbiased) text += "-unbiased";
  if (format.simulated()) text += "-" + std::string(to_string(format.arithmetic));
  return text;
}

namespace {

// "g64" -> 64, "ghead" -> 0; -1: not known.
int group_from(std::string_view text) {
  for (const std::string_view group : kGroups) {
    if (text.empty() || text[0] != 'g' || text.substr(1) != group) continue;
    int value = 0;
    if (group != "head") std::from_chars(group.data(), group.data() + group.size(), value);
    return value;
  }
  return -1;
}

// The same of a name that ends in a reference arithmetic.
std::string reference_contradiction(const Format& format) {
  const bool packed = format.arithmetic == Arithmetic::pack11;
  if (format.hadamard || (format.symmetric && packed)) {
    return "has an option that its published arithmetic does not have";
  }
  const bool three = format.codec == Codec::int3;
  if (packed) {
    const bool fits = three && format.axis == Axis::channel && format.group == kPackedTokens;
    return fits ? "" : "is no int3-channel-g11-11pack, the only form of that word";
  }
  const bool known = info(format.codec).integer() && !three;
  return known && format.group != 16 && format.group != kPackedTokens
             ? ""
             : "is none of KVTuner's, which has int8, int4 and int2 in groups of 32, 64, 128 or "
               "head";
}

// Takes a reference arithmetic off the end of a name; "kvtuner-bf16" is one part of it.
Arithmetic cut_arithmetic(std::string_view* name) {
  for (const Arithmetic arithmetic : kReferences) {
    const std::string end = "-" + std::string(to_string(arithmetic));
    if (!name->ends_with(end)) continue;
    name->remove_suffix(end.size());
    return arithmetic;
  }
  return Arithmetic::native;
}

// What of a well-formed name contradicts the codec; "" = nothing.
std::string contradiction(const Format& format) {
  const CodecInfo& codec = info(format.codec);
  if (format.axis == Axis::channel && format.group == 0) {
    return "groups a whole head along tokens, which has no meaning";
  }
  if (!codec.takes(format.axis)) return "has an axis that its codec does not take (token only)";
  if (format.simulated()) return reference_contradiction(format);
  if (format.group == kPackedTokens) return "has a group of 11, which only 11pack has";
  const bool fixed = codec.group != kAnyGroup && format.group != codec.group;
  if (fixed || (codec.group == kAnyGroup && format.group == 16)) {
    return "has a group that its codec does not take";
  }
  if (format.symmetric && codec.symmetric_bytes == 0) {
    return "is symmetric, which its codec does not distinguish";
  }
  if (format.calibrated && !takes_constant(format.codec)) {
    return "is calibrated, but its codec takes no constant";
  }
  return "";
}

}  // namespace

Result<Format> format_from(std::string_view name) {
  const auto wrong = [&](const std::string& why) {
    return bad_input(
        "format \"" + std::string(name) + "\" " + why +
        "; a format is `base` or CODEC-AXIS-gGROUP[-sym][-had][-cal][-unbiased], such as "
        "int4-token-g64 or int8-channel-g32");
  };
  std::string_view native = name;
  const Arithmetic arithmetic = cut_arithmetic(&native);
  const std::vector<std::string> parts = split(native, '-');
  const Result<Codec> codec = codec_from(parts[0]);
  if (!codec.ok()) return wrong("has an unknown codec");
  if (*codec == Codec::base) {
    if (parts.size() > 1 || arithmetic != Arithmetic::native)
      return wrong("has options that the base type does not take");
    return Format{};
  }
  if (parts.size() < 3 || parts.size() > 7) return wrong("has too few or too many parts");

  Format format;
  format.codec = *codec;
  format.arithmetic = arithmetic;
  if (parts[1] == "channel") {
    format.axis = Axis::channel;
  } else if (parts[1] != "token") {
    return wrong("has an unknown axis");
  }
  format.group = group_from(parts[2]);
  if (format.group < 0) return wrong("has an unknown group (head, 11, 16, 32, 64, 128)");
  size_t next = 3;
  const auto flag = [&](std::string_view word) {
    const bool set = next < parts.size() && parts[next] == word;
    if (set) ++next;
    return set;
  };
  format.symmetric = flag("sym");
  format.hadamard = flag("had");
  format.calibrated = flag("cal");
  format.unbiased = flag("unbiased");
  if (next != parts.size()) return wrong("ends in something else than sym, had, cal or unbiased");
  if (const std::string why = contradiction(format); !why.empty()) return wrong(why);
  return format;
}

std::string to_string(Pair pair) {
  std::string text = "K";
  text += info(pair.k).label;
  text += "V";
  text += info(pair.v).label;
  return text;
}

Result<Pair> pair_from(std::string_view text) {
  if (text == "baseline") return Pair{};
  for (const CodecInfo& k : codecs()) {
    if (text == "KV" + std::string(k.label)) return Pair{k.codec, k.codec};
    for (const CodecInfo& v : codecs()) {
      const Pair pair{k.codec, v.codec};
      if (text == to_string(pair)) return pair;
    }
  }
  const std::string near = nearest_word(text, pair_names());
  std::vector<std::string> labels;
  for (const CodecInfo& codec : codecs()) labels.emplace_back(codec.label);
  return bad_input("pair \"" + std::string(text) +
                   "\" is not known; write K<width>V<width> with widths of " + join(labels, ", ") +
                   ", such as K8V4, or `baseline`" +
                   (near.empty() ? "" : " (did you mean " + near + "?)"));
}

}  // namespace kvsweep
