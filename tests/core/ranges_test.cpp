#include "core/ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/catalog/page_layout.hpp"
#include "core/file.hpp"
#include "core/precision_map.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using testing::HasSubstr;

const Ranges kRanges{"hash", {20.1f, 3.0f}, {1.5f, 0.1f}};

Scheme fp8(const std::optional<Ranges>& ranges) {
  SchemeOptions options;
  options.name = "fp8";
  options.ranges = ranges;
  return make_scheme(options).value();
}

PrecisionMap fp8_map(const Ranges& ranges) {
  return uniform_map(fp8(ranges), 2, {Codec::fp8_e4m3, Codec::fp8_e4m3});
}

// By hand: 448 * 2 = 896, 57344 / 2 = 28672; the largest nvfp4 is code 6 times scale 448.
TEST(Ranges, ConstantsReachTheRange) {
  EXPECT_EQ(constant_for(Codec::fp8_e4m3, 896.0f), 2.0f);
  EXPECT_EQ(constant_for(Codec::fp8_e5m2, 28672.0f), 0.5f);
  EXPECT_EQ(constant_for(Codec::nvfp4, 2688.0f), 1.0f);
  EXPECT_EQ(constant_for(Codec::mxfp4, 1.0f), 0.0f);
  EXPECT_FALSE(takes_constant(Codec::int8));
}

TEST(Ranges, TravelExactly) {
  const auto read = ranges_from_json(Json::parse(to_json(kRanges).dump()), "r");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, kRanges);
  const PrecisionMap map = fp8_map(kRanges);
  const auto sent = precision_map_from_json(to_json(map));
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  EXPECT_EQ(*sent, map);
}

// Reference: quantization.md §3, "FP8 + tensor scale 8". One token per page slot: 64 of them.
TEST(Ranges, ConstantsTakeNoBytesPerToken) {
  const ModelGeometry geometry{"llama", 4096, {{2, 64}, {2, 64}}};
  const auto bits = [&](const PrecisionMap& map) {
    return effective_bits(cache_layout(map, geometry, BaseType::fp16), geometry, 4096);
  };
  EXPECT_EQ(bits(fp8_map(kRanges)), 8.0);
  EXPECT_EQ(bits(uniform_map(fp8({}), 2, {Codec::fp8_e4m3, Codec::fp8_e4m3})), 8.25);
  const CacheLayout layout = cache_layout(fp8_map(kRanges), geometry, BaseType::fp16);
  EXPECT_EQ(layout.keys[0][0].constant, 20.1f / 448.0f);
  EXPECT_EQ(layout.values[1][0].constant, 0.1f / 448.0f);
  SchemeOptions options;
  options.ranges = kRanges;
  const auto nvfp4 = uniform_map(make_scheme(options).value(), 2, {Codec::nvfp4, Codec::nvfp4});
  EXPECT_EQ(bits(nvfp4), 4.5);
}

TEST(Ranges, AreTheMeaningOfMapsThatUseThem) {
  Ranges other = kRanges;
  other.keys[1] = 3.5f;
  EXPECT_NE(map_id(fp8_map(kRanges)), map_id(fp8_map(other)));
  other = kRanges;
  other.model_hash = "another";
  EXPECT_EQ(map_id(fp8_map(kRanges)), map_id(fp8_map(other)));
  // Integer codes take no constant: their maps are what they were.
  SchemeOptions options;
  const auto plain = uniform_map(make_scheme(options).value(), 2, {Codec::int4, Codec::int4});
  options.ranges = kRanges;
  const auto ranged = uniform_map(make_scheme(options).value(), 2, {Codec::int4, Codec::int4});
  EXPECT_EQ(map_id(plain), map_id(ranged));
  // Factoring changes maps that code keys, and no others.
  options = {};
  options.key_bias = KeyBias::factored;
  const auto scheme = make_scheme(options).value();
  EXPECT_NE(map_id(uniform_map(scheme, 2, {Codec::int4, Codec::int4})), map_id(plain));
  EXPECT_EQ(map_id(uniform_map(scheme, 2, {Codec::base, Codec::int4})),
            map_id(uniform_map(make_scheme({}).value(), 2, {Codec::base, Codec::int4})));
}

TEST(Ranges, WrongOnesAreRefusedByName) {
  const ModelGeometry three{"llama", 4096, {{2, 64}, {2, 64}, {2, 64}}};
  const auto map = uniform_map(fp8(kRanges), 3, {Codec::fp8_e4m3, Codec::fp8_e4m3});
  const Status fits = check_map(map, three);
  ASSERT_FALSE(fits.ok());
  EXPECT_THAT(fits.error().message, HasSubstr("of 2 layers, but the model has 3"));
  for (const char* wrong : {"0", "-1", "0.1", "1e31", "\"x\"", "null"}) {
    const auto json = Json::parse("{\"keys\":[1," + std::string(wrong) + "],\"values\":[1,2]}");
    const auto read = ranges_from_json(json, "r");
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_THAT(read.error().message, HasSubstr("layer 1")) << wrong;
  }
  EXPECT_FALSE(ranges_from_json(Json::parse(R"({"keys":[1,2],"values":[1]})"), "r").ok());
  SchemeOptions options;
  options.name = "kvmix";
  options.ranges = kRanges;
  EXPECT_FALSE(make_scheme(options).ok());
}

TEST(RangesFile, SaysWhatASchemeNeeds) {
  const test::TempDir dir;
  const std::string path = (dir.path() / "r.json").string();
  ObservedRanges observed{"hash", {1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}};
  ASSERT_TRUE(write_file_atomic(path, to_json(observed, {{"tokens", 3}}).dump()).ok());
  const auto read = read_ranges_file(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, observed);
  SchemeOptions options;
  options.hadamard = Hadamard::both;
  options.key_bias = KeyBias::factored;
  ASSERT_TRUE(set_ranges(*read, options).ok());
  EXPECT_EQ(*options.ranges, (Ranges{"hash", {7, 8}, {11, 12}}));
  observed.unbiased_keys.clear();
  observed.rotated_unbiased_keys.clear();
  EXPECT_THAT(set_ranges(observed, options).error().message, HasSubstr("key_bias: factored"));
  ASSERT_TRUE(write_file_atomic(path, "{\"schema\": \"kvmap\"}").ok());
  EXPECT_THAT(read_ranges_file(path).error().message, HasSubstr("kvsweep-ranges"));
}

}  // namespace
}  // namespace kvsweep
