// Format: how one side (keys or values) of one layer is stored. Pair: both sides of a layer.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace kvsweep {

enum class Codec : uint8_t {
#define KVSWEEP_CODEC(id, name, label, bits, axes, group, params, symmetric, summary) id,
#include "core/catalog/codecs.def"
#undef KVSWEEP_CODEC
};

enum class Axis : uint8_t { token, channel };
std::string_view to_string(Axis axis);

enum class CodecAxes : uint8_t { both, token_only };
inline constexpr int kAnyGroup = -1;

struct CodecInfo {
  Codec codec;
  std::string_view name;
  std::string_view label;
  int bits;  // 0: an element of the baseline type
  CodecAxes axes;
  int group;            // kAnyGroup: the scheme's; 0: whole head; else the only one
  int param_bytes;      // per group
  int symmetric_bytes;  // the same of the symmetric form; 0: there is none
  std::string_view summary;

  bool takes(Axis axis) const { return axis == Axis::token || axes == CodecAxes::both; }
  bool integer() const { return symmetric_bytes > 0; }
};
const std::vector<CodecInfo>& codecs();
const CodecInfo& info(Codec codec);
Result<Codec> codec_from(std::string_view name);

// The unquantized cache: type of pass-through layers, residual window, sinks and open groups.
enum class BaseType : uint8_t { fp32, fp16, bf16 };
std::string_view to_string(BaseType type);
Result<BaseType> base_type_from(std::string_view name);
int bytes_of(BaseType type);  // 4, 2, 2

// Whose arithmetic makes the codes. All but `native` reproduce published code and are simulated:
// the cache keeps what decoding gives and counts the bytes that the codes would take
// (worker/cache/simulated.hpp, docs/decisions/0007).
//   kvtuner, kvtuner_bf16  KVTuner's integer zero-point, each operation rounded to fp32 or to bf16
//   pack11                 KVmix's word of 11 tokens, three bits each and two for the last
enum class Arithmetic : uint8_t { native, kvtuner, kvtuner_bf16, pack11 };
std::string_view to_string(Arithmetic arithmetic);  // "native", "kvtuner", "kvtuner-bf16", "11pack"
// Bytes of a group's parameters in integer codes: scale and offset in fp16, fp32 or bf16.
int param_bytes(Arithmetic arithmetic);
inline constexpr int kPackedTokens = 11;  // of pack11: its only group

// Named `int4-token-g64`, `int4-channel-g32`, `int4-token-ghead`, `int8-token-g64-sym`,
// `int2-token-ghead-had`, `fp8_e4m3-token-ghead-cal`, `int4-channel-g32-unbiased`,
// `int4-token-ghead-kvtuner`, `int3-channel-g11-11pack`, `base`.
// axis token: groups run along head_dim inside one token of one head (the last may be shorter).
// axis channel: groups are `group` consecutive tokens of one channel.
struct Format {
  Codec codec = Codec::base;
  Axis axis = Axis::token;
  int group = 0;  // elements; 0 = whole head (token axis only). 0 for base.
  bool symmetric = false;
  bool hadamard = false;    // codes are of the rotated rows (worker/codec/hadamard.hpp)
  bool calibrated = false;  // a constant of the side scales the codes (core/ranges.hpp)
  bool unbiased = false;    // keys without the bias of their projection, which attention adds
  Arithmetic arithmetic = Arithmetic::native;  // another takes none of the three

  bool quantized() const { return codec != Codec::base; }
  bool simulated() const { return arithmetic != Arithmetic::native; }
  friend auto operator<=>(const Format&, const Format&) = default;
};
std::string to_string(const Format& format);
Result<Format> format_from(std::string_view name);

// What a gene chooses: the codecs of both sides; the scheme supplies axes and groups.
struct Pair {
  Codec k = Codec::base;
  Codec v = Codec::base;
  friend auto operator<=>(const Pair&, const Pair&) = default;
};
std::string to_string(Pair pair);               // "K8V4"; the baseline is "K16V16"
Result<Pair> pair_from(std::string_view text);  // accepts "K8V4", "KV8" and "baseline"

}  // namespace kvsweep
