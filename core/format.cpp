#include "core/format.hpp"

#include <array>
#include <charconv>

#include "core/text.hpp"

namespace kvsweep {
namespace {

constexpr std::array<std::string_view, 3> kBaseTypes = {"fp32", "fp16", "bf16"};

// Group lengths that pages and kernels know; 0 is the whole head.
constexpr std::array<std::string_view, 4> kGroups = {"head", "32", "64", "128"};

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
#define KVSWEEP_CODEC(id, name, label, bits) {Codec::id, name, label, bits},
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

std::string to_string(const Format& format) {
  std::string text(info(format.codec).name);
  if (!format.quantized()) return text;
  text += "-";
  text += to_string(format.axis);
  text += "-g" + (format.group == 0 ? std::string("head") : std::to_string(format.group));
  if (format.symmetric) text += "-sym";
  return text;
}

Result<Format> format_from(std::string_view name) {
  const auto wrong = [&](const std::string& why) {
    return bad_input("format \"" + std::string(name) + "\" " + why +
                     "; a format is `base` or CODEC-AXIS-gGROUP[-sym], such as int4-token-g64 or "
                     "int8-channel-g32");
  };
  const std::vector<std::string> parts = split(name, '-');
  const Result<Codec> codec = codec_from(parts[0]);
  if (!codec.ok()) return wrong("has an unknown codec");
  if (*codec == Codec::base) {
    if (parts.size() > 1) return wrong("has options that the base type does not take");
    return Format{};
  }
  if (parts.size() < 3 || parts.size() > 4) return wrong("has too few or too many parts");

  Format format{*codec, Axis::token, 0, false};
  if (parts[1] == "channel") {
    format.axis = Axis::channel;
  } else if (parts[1] != "token") {
    return wrong("has an unknown axis");
  }
  bool known_group = false;
  for (const std::string_view group : kGroups) {
    if (parts[2] != "g" + std::string(group)) continue;
    known_group = true;
    if (group != "head") std::from_chars(group.data(), group.data() + group.size(), format.group);
  }
  if (!known_group) return wrong("has an unknown group (head, 32, 64, 128)");
  if (format.axis == Axis::channel && format.group == 0) {
    return wrong("groups a whole head along tokens, which has no meaning");
  }
  if (parts.size() == 4 && parts[3] != "sym") return wrong("ends in something else than sym");
  format.symmetric = parts.size() == 4;
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
  return bad_input("pair \"" + std::string(text) + "\" is not known; write K<bits>V<bits> with " +
                   join(labels, ", ") + " bits, such as K8V4, or `baseline`" +
                   (near.empty() ? "" : " (did you mean " + near + "?)"));
}

}  // namespace kvsweep
