// Effective bits: reference table of quantization.md section 3, row by row, and the bytes of rows
// of every head size.
#include <gtest/gtest.h>

#include "tests/worker/codec/codec_cases.hpp"

namespace kvsweep::codec {
namespace {

using testing::Layout;

// Bits per element of the codes and parameters of `l`.
double effective_bits(std::string_view name, const Layout& l) {
  const Codec* codec = find_codec(name);
  if (codec == nullptr) {
    ADD_FAILURE() << name;
    return 0;
  }
  const int64_t bytes = testing::code_bytes(*codec, l) + testing::param_bytes(*codec, l);
  return 8.0 * double(bytes) / (double(l.tokens) * l.head_dim);
}

double token_bits(std::string_view name, int head_dim, int group, const Variant& variant = {}) {
  return effective_bits(name, {false, head_dim, group, 64, variant});
}
double channel_bits(std::string_view name, int group) {
  return effective_bits(name, {true, 128, group, group, {}});
}

TEST(EffectiveBits, AreThoseOfTheReferenceTable) {
  const Variant tensor_scale{.calibrated = true, .constant = 1};
  EXPECT_EQ(token_bits("fp8_e4m3", 128, 128, tensor_scale), 8);
  EXPECT_EQ(token_bits("fp8_e5m2", 128, 128, tensor_scale), 8);
  EXPECT_EQ(token_bits("int8", 128, 128), 8.25);
  EXPECT_EQ(token_bits("int8", 128, 32), 9.0);
  EXPECT_EQ(token_bits("int4", 128, 128), 4.25);
  EXPECT_EQ(token_bits("int4", 128, 64), 4.5);
  EXPECT_EQ(token_bits("int4", 128, 32), 5.0);
  EXPECT_EQ(token_bits("int3", 128, 32), 4.0);
  EXPECT_EQ(token_bits("int3", 128, 64), 3.5);
  EXPECT_EQ(token_bits("int2", 128, 32), 3.0);
  EXPECT_EQ(token_bits("int2", 128, 64), 2.5);
  EXPECT_EQ(token_bits("int2", 128, 128), 2.25);
  EXPECT_EQ(token_bits("nvfp4", 128, 16, tensor_scale), 4.5);
  EXPECT_EQ(token_bits("mxfp4", 128, 32), 4.25);
  // KVTuner per token, D = 128: b + 0.25, with its parameters in bf16.
  EXPECT_EQ(token_bits("int8-kvtuner-bf16", 128, 128), 8.25);
  EXPECT_EQ(token_bits("int4-kvtuner-bf16", 128, 128), 4.25);
  EXPECT_EQ(token_bits("int2-kvtuner-bf16", 128, 128), 2.25);
  // KIVI g32: b + 1.
  EXPECT_EQ(channel_bits("int4", 32), 5.0);
  EXPECT_EQ(channel_bits("int2", 32), 3.0);
  EXPECT_EQ(channel_bits("int3", 32), 4.0);
  EXPECT_DOUBLE_EQ(channel_bits("int3-11pack", 11), 64.0 / 11);
}

// Ours, by the same formula: (scale + zero bits) / G.
TEST(EffectiveBits, OfOurVariants) {
  const Variant symmetric{.symmetric = true};
  EXPECT_EQ(token_bits("int8", 128, 32, symmetric), 8.5);
  EXPECT_EQ(token_bits("int4", 128, 64, symmetric), 4.25);
  EXPECT_EQ(token_bits("int2", 128, 128, symmetric), 2.125);
  EXPECT_EQ(token_bits("fp8_e4m3", 128, 128), 8.125);
  EXPECT_EQ(token_bits("fp8_e5m2", 64, 64), 8.25);
  EXPECT_EQ(token_bits("int4-kvtuner", 128, 128), 4.5);
}

// 80 elements of 3 bits lie in 96: 36 bytes; the others divide every head size.
TEST(RowBytes, OfEveryHeadSize) {
  for (const Codec& codec : codecs()) {
    if (codec.row_tokens() != 1) continue;
    for (int head_dim : {64, 80, 96, 128, 256}) {
      const int padded = codec.bits == 3 ? (head_dim + 31) / 32 * 32 : head_dim;
      EXPECT_EQ(codec.row_bytes(head_dim), padded * codec.bits / 8) << codec.name;
    }
  }
  EXPECT_EQ(find_codec("int3")->row_bytes(80), 36);
  EXPECT_EQ(find_codec("int3-11pack")->row_bytes(80), 320);
}

}  // namespace
}  // namespace kvsweep::codec
