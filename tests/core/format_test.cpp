#include "core/format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvsweep {
namespace {

using ::testing::HasSubstr;

TEST(Format, NamesReadBack) {
  const Format formats[] = {
      {},
      {Codec::int4, Axis::token, 64, false},
      {Codec::int2, Axis::channel, 32, false},
      {Codec::int8, Axis::token, 0, false},
      {Codec::int8, Axis::channel, 128, true},
      {Codec::int3, Axis::token, 0, false, true},
      {Codec::int2, Axis::token, 32, true, true},
      {Codec::fp8_e4m3, Axis::token, 0},
      {Codec::nvfp4, Axis::token, 16},
  };
  const char* names[] = {"base",
                         "int4-token-g64",
                         "int2-channel-g32",
                         "int8-token-ghead",
                         "int8-channel-g128-sym",
                         "int3-token-ghead-had",
                         "int2-token-g32-sym-had",
                         "fp8_e4m3-token-ghead",
                         "nvfp4-token-g16"};
  for (size_t i = 0; i < std::size(formats); ++i) {
    EXPECT_EQ(to_string(formats[i]), names[i]);
    ASSERT_TRUE(format_from(names[i]).ok());
    EXPECT_EQ(*format_from(names[i]), formats[i]);
  }
}

TEST(Format, RefusesOtherNames) {
  for (const char* name :
       {"", "int4", "int4-token", "int4-token-64", "int4-token-g48", "int4-row-g64",
        "int4-channel-ghead", "int5-token-g64", "base-token-g64", "int4-token-g64-asym",
        "int4-token-g64-sym-sym", "int4-token-g64-had-sym", "int4-token-g16",
        "fp8_e4m3-channel-g32", "fp8_e4m3-token-g64", "nvfp4-token-g32", "mxfp4-token-g32-sym",
        "INT4-token-g64", "int4-token-g064"}) {
    const auto format = format_from(name);
    ASSERT_FALSE(format.ok()) << name;
    EXPECT_EQ(format.error().code, ErrorCode::bad_input);
    EXPECT_THAT(format.error().message, HasSubstr(std::string("\"") + name + "\""));
  }
}

TEST(Pair, PrintsLabelsAndReadsThemBack) {
  EXPECT_EQ(to_string(Pair{Codec::int8, Codec::int4}), "K8V4");
  EXPECT_EQ(to_string(Pair{}), "K16V16");
  for (const CodecInfo& k : codecs()) {
    for (const CodecInfo& v : codecs()) {
      const Pair pair{k.codec, v.codec};
      EXPECT_EQ(*pair_from(to_string(pair)), pair);
    }
  }
  EXPECT_EQ(*pair_from("KV8"), (Pair{Codec::int8, Codec::int8}));
  EXPECT_EQ(*pair_from("baseline"), Pair{});
}

TEST(Pair, ErrorNamesTheNearest) {
  const auto pair = pair_from("K8V5");
  ASSERT_FALSE(pair.ok());
  EXPECT_THAT(pair.error().message, HasSubstr("did you mean K8V"));
  // KIVI#26: one bit was an illegal access to memory, not an error.
  for (const char* text : {"K1V1", "KV1", "", "K", "V4K8", "K4", "K4V", "KV", "K4V4 ", "8/4"}) {
    EXPECT_FALSE(pair_from(text).ok()) << text;
  }
}

TEST(BaseType, BytesAndNames) {
  EXPECT_EQ(bytes_of(BaseType::fp32), 4);
  EXPECT_EQ(bytes_of(BaseType::fp16), 2);
  EXPECT_EQ(bytes_of(BaseType::bf16), 2);
  for (const BaseType type : {BaseType::fp32, BaseType::fp16, BaseType::bf16}) {
    EXPECT_EQ(*base_type_from(to_string(type)), type);
  }
  EXPECT_THAT(base_type_from("float16").error().message, HasSubstr("fp32, fp16, bf16"));
}

TEST(Format, ReferenceArithmeticIsTheEndOfTheName) {
  for (const char* name :
       {"int4-token-ghead-kvtuner", "int2-channel-g32-kvtuner-bf16", "int8-token-g128-kvtuner",
        "int3-channel-g11-11pack", "int4-token-g64-sym-kvtuner"}) {
    const auto format = format_from(name);
    ASSERT_TRUE(format.ok()) << format.error().message;
    EXPECT_TRUE(format->simulated());
    EXPECT_EQ(to_string(*format), name);
  }
  EXPECT_EQ(format_from("int4-token-g32-kvtuner-bf16")->arithmetic, Arithmetic::kvtuner_bf16);
  for (const char* name :
       {"int3-token-ghead-kvtuner", "int4-token-g64-had-kvtuner", "int4-token-g16-kvtuner",
        "int3-channel-g11-sym-11pack", "fp8_e4m3-token-ghead-kvtuner", "int4-channel-ghead-kvtuner",
        "int3-channel-g32-11pack", "int3-token-g11-11pack", "int4-channel-g11-11pack",
        "int3-channel-g11", "base-kvtuner", "-kvtuner", "int4-token-ghead-bf16",
        "int4-token-g32-kvtuner-kvtuner"}) {
    EXPECT_FALSE(format_from(name).ok()) << name;
  }
}

}  // namespace
}  // namespace kvsweep
