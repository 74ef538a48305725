#include "core/precision_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include <set>

namespace kvsweep {
namespace {

using ::testing::HasSubstr;

constexpr Pair kK8V4{Codec::int8, Codec::int4};
constexpr Pair kK4V2{Codec::int4, Codec::int2};

Scheme scheme(const std::string& name, std::optional<int> group = {},
              std::optional<int> residual = {}, std::optional<Prefill> prefill = {}) {
  SchemeOptions options;
  options.name = name;
  options.group = group;
  options.residual = residual;
  options.prefill = prefill;
  return make_scheme(options).value();
}

ModelGeometry geometry(int layers, int kv_heads, int head_dim) {
  ModelGeometry made;
  made.family = "llama";
  made.layers.assign(static_cast<size_t>(layers), {kv_heads, head_dim});
  return made;
}

// Expected values: tests/core/reference/goldens.py hashes the meaning written out by hand.
TEST(MapId, EqualsTheIndependentRewrite) {
  const PrecisionMap map{scheme("per-token"), {kK8V4, Pair{}}};
  EXPECT_EQ(map_id(map), "1398094ed98e4baad9c913af12559a952017937d65c06c2362e0c664d78895e7");
  EXPECT_EQ(map_id(baseline_map(scheme("kivi"), 2)),
            "21caa0842f72dc11ec2e2d14aa87fd3c786535d3e8da764f2cc1fbe9dac8233e");
}

TEST(MapId, OfHeadsEqualsTheIndependentRewrite) {
  const PrecisionMap map{scheme("per-token"),
                         {LayerPairs::of_heads({kK8V4, {Codec::int4, Codec::int4}}), kK8V4}};
  EXPECT_EQ(map_id(map), "3337538451e1c4b3cdb59aded95bcbe4643e8cd7eb9fc227e58c7cefbe11fea1");
}

// Heads with one pair are the layer with that pair, in every way.
TEST(LayerPairs, HeadsThatAgreeAreALayer) {
  const LayerPairs layer = LayerPairs::of_heads({kK8V4, kK8V4, kK8V4});
  EXPECT_FALSE(layer.per_head());
  EXPECT_EQ(layer, kK8V4);
  EXPECT_EQ(to_string(layer), "K8V4");
  EXPECT_EQ(layer.of(7), kK8V4);
  EXPECT_EQ(map_id({scheme("kivi"), {layer}}), map_id({scheme("kivi"), {kK8V4}}));
  EXPECT_TRUE((PrecisionMap{scheme("kivi"), {LayerPairs::of_heads({{}, {}})}}).is_baseline());
}

TEST(LayerPairs, TextRoundTrip) {
  const LayerPairs mixed = LayerPairs::of_heads({kK8V4, Pair{}, kK4V2});
  EXPECT_TRUE(mixed.per_head());
  EXPECT_EQ(to_string(mixed), "K8V4|K16V16|K4V2");
  EXPECT_EQ(layer_pairs_from(to_string(mixed)).value(), mixed);
  EXPECT_EQ(layer_pairs_from("K8V4|K8V4").value(), kK8V4);
  for (const char* bad : {"", "|", "K8V4|", "|K8V4", "K8V4||K8V4", "K8V4,K4V2", "K8V4|K5V2"}) {
    EXPECT_FALSE(layer_pairs_from(bad).ok()) << bad;
  }
  EXPECT_THAT(layer_pairs_from("K8V4|K5V2").error().message, HasSubstr("\"K5V2\""));
  EXPECT_THROW(LayerPairs::of_heads({}), std::invalid_argument);
  EXPECT_THROW((void)mixed.of(3), std::out_of_range);
}

TEST(MapId, BaselineHasOneIdWhateverTheScheme) {
  const std::string id = map_id(baseline_map(scheme("per-token"), 4));
  EXPECT_EQ(id, map_id(baseline_map(scheme("kivi"), 4)));
  EXPECT_EQ(id, map_id(baseline_map(scheme("kivi", 64, 128, Prefill::stepwise), 4)));
  EXPECT_NE(id, map_id(baseline_map(scheme("per-token"), 5)));
}

TEST(MapId, DiffersWhereTheMeaningDiffers) {
  std::set<std::string> ids;
  const auto add = [&](const Scheme& made, std::vector<LayerPairs> layers) {
    EXPECT_TRUE(ids.insert(map_id({made, std::move(layers)})).second);
  };
  add(scheme("per-token"), {kK8V4, kK8V4});
  add(scheme("per-token"), {kK8V4});
  add(scheme("per-token"), {{Codec::int4, Codec::int8}, kK8V4});
  add(scheme("per-token"), {kK8V4, {Codec::int4, Codec::int8}});
  add(scheme("per-token", 64), {kK8V4, kK8V4});
  add(scheme("per-token", {}, 16), {kK8V4, kK8V4});
  add(scheme("per-token", {}, {}, Prefill::exact), {kK8V4, kK8V4});
  add(scheme("kivi"), {kK8V4, kK8V4});
  add(scheme("kivi", 32, 64), {kK8V4, kK8V4});
  add(scheme("kivi", 64, 64), {kK8V4, kK8V4});
  add(scheme("per-token"), {LayerPairs::of_heads({kK8V4, kK4V2}), kK8V4});
  add(scheme("per-token"), {LayerPairs::of_heads({kK4V2, kK8V4}), kK8V4});
  add(scheme("per-token"), {LayerPairs::of_heads({kK8V4, kK4V2, kK4V2}), kK8V4});
}

TEST(MapId, IgnoresThePolicyOfASideThatNothingCodes) {
  // The residual of kivi decides both windows; with values in the base type only the keys' window
  // is left, and that one differs, so the ids differ ...
  const std::vector<LayerPairs> keys_only = {{Codec::int8, Codec::base}};
  EXPECT_NE(map_id({scheme("kivi", 32, 32), keys_only}),
            map_id({scheme("kivi", 32, 64), keys_only}));
}

// What the database and files of maps hold: these never change for schemes that were there before.
TEST(MapId, OptionsThatAreOffLeaveIdsAsTheyWere) {
  const std::string plain = map_id({scheme("kivi", 32, 32), {kK8V4}});
  SchemeOptions options;
  options.name = "kivi";
  for (const auto& change : std::vector<std::function<void(SchemeOptions&)>>{
           [](SchemeOptions& o) { o.sinks = 4; }, [](SchemeOptions& o) { o.symmetric = true; },
           [](SchemeOptions& o) { o.hadamard = Hadamard::keys; }}) {
    SchemeOptions changed = options;
    change(changed);
    EXPECT_NE(map_id({make_scheme(changed).value(), {kK8V4}}), plain);
  }
  options.sinks = 0;
  options.symmetric = false;
  options.hadamard = Hadamard::none;
  EXPECT_EQ(map_id({make_scheme(options).value(), {kK8V4}}), plain);
  options = {};
  options.name = "kvmix";
  const std::string by_bits = map_id({make_scheme(options).value(), {kK8V4}});
  options.share = 2;
  EXPECT_NE(map_id({make_scheme(options).value(), {kK8V4}}), by_bits);
}

TEST(Summary, RunsOfEqualLayers) {
  const Scheme s = scheme("per-token");
  EXPECT_EQ(summary(uniform_map(s, 5, kK8V4)), "K8V4");
  EXPECT_EQ(summary({s, {kK8V4, kK8V4, kK8V4, {Codec::int2, Codec::int2}}}), "K8V4 x3, K2V2");
  EXPECT_EQ(summary({s, {Pair{}, kK8V4, Pair{}}}), "K16V16, K8V4, K16V16");
  const LayerPairs heads = LayerPairs::of_heads({kK8V4, kK4V2});
  EXPECT_EQ(summary({s, {heads, heads, kK8V4}}), "K8V4|K4V2 x2, K8V4");
}

TEST(NominalBits, WeighsLayersByTheirElements) {
  // Layer 0: 1 head of 64; layer 1: 3 heads of 64. K8V4 then K2V2:
  // (64 * (8 + 4) + 192 * (2 + 2)) / (2 * 256) = (768 + 768) / 512 = 3.
  ModelGeometry model = geometry(2, 1, 64);
  model.layers[1].kv_heads = 3;
  const PrecisionMap map{scheme("per-token"), {kK8V4, {Codec::int2, Codec::int2}}};
  EXPECT_DOUBLE_EQ(nominal_bits(map, model, BaseType::fp16), 3.0);
  EXPECT_DOUBLE_EQ(nominal_bits(baseline_map(map.scheme, 2), model, BaseType::fp32), 32.0);
  // Layer 1 per head, K8V4|K4V2|K2V2: (64 * 4 + 64 * (12 + 6 + 4)) / 512 = 1664 / 512 = 3.25.
  const PrecisionMap heads{map.scheme,
                           {{Codec::int2, Codec::int2},
                            LayerPairs::of_heads({kK8V4, kK4V2, {Codec::int2, Codec::int2}})}};
  EXPECT_DOUBLE_EQ(nominal_bits(heads, model, BaseType::fp16), 3.25);
}

TEST(PrecisionMapJson, RoundTrip) {
  SchemeOptions options;
  options.name = "kvmix";
  options.share = 3;
  options.sinks = 4;
  options.symmetric = true;
  options.hadamard = Hadamard::both;
  for (const Scheme& made :
       {scheme("per-token", 64, 64, Prefill::exact), scheme("kivi", 64, 64, Prefill::exact),
        make_scheme(options).value()}) {
    const PrecisionMap map{
        made, {kK8V4, Pair{}, {Codec::int3, {}}, LayerPairs::of_heads({kK8V4, Pair{}, kK4V2})}};
    const auto back = precision_map_from_json(to_json(map));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, map);
  }
}

TEST(PrecisionMapJson, RefusesDamage) {
  const Json good = to_json(PrecisionMap{scheme("kivi"), {kK8V4}});
  const auto refused = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return !precision_map_from_json(bad).ok();
  };
  EXPECT_FALSE(refused("/layers/0", "K4V4"));
  EXPECT_TRUE(refused("/layers/0", "K9V4"));
  EXPECT_FALSE(refused("/layers/0", "K4V4|K8V4"));
  EXPECT_TRUE(refused("/layers/0", "K4V4|"));
  EXPECT_TRUE(refused("/layers/0", "K4V4|K9V4"));
  EXPECT_TRUE(refused("/layers", Json::array()));
  EXPECT_TRUE(refused("/layers", "K8V4"));
  EXPECT_TRUE(refused("/scheme/name", "fancy"));
  EXPECT_TRUE(refused("/scheme/group", 48));
  EXPECT_TRUE(refused("/scheme/group", 0));           // head along channels
  EXPECT_TRUE(refused("/scheme/residual", 40));       // no whole groups
  EXPECT_TRUE(refused("/scheme/residual", 0));        // would divide by zero
  EXPECT_TRUE(refused("/scheme/residual", 1 << 30));  // would stage gigabytes
  EXPECT_TRUE(refused("/scheme/residual", -1));
  EXPECT_TRUE(refused("/scheme/sinks", 65));
  EXPECT_TRUE(refused("/scheme/symmetric", 1));
  EXPECT_TRUE(refused("/scheme/hadamard", "some"));
  EXPECT_TRUE(refused("/scheme/share_tenths", 2));  // of another kind of window
  EXPECT_TRUE(refused("/scheme/other", 2));
  EXPECT_TRUE(refused("/scheme/prefill", "lazy"));
  EXPECT_TRUE(refused("/scheme", Json::array()));
}

TEST(CheckMap, LayerCountAndWholeBytes) {
  const Scheme s = scheme("per-token");
  EXPECT_TRUE(check_map(uniform_map(s, 4, kK8V4), geometry(4, 2, 64)).ok());
  const Status count = check_map(uniform_map(s, 4, kK8V4), geometry(30, 3, 64));
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.error().code, ErrorCode::bad_input);
  EXPECT_THAT(count.error().message, HasSubstr("4 layers, but the model has 30"));
  // 7 elements of 4 bits are three and a half bytes; 7 of 8 bits are whole.
  PrecisionMap map = uniform_map(s, 3, {Codec::int8, Codec::int8});
  EXPECT_TRUE(check_map(map, geometry(3, 1, 7)).ok());
  map.layers[2] = {Codec::int8, Codec::int4};
  EXPECT_THAT(check_map(map, geometry(3, 1, 7)).error().message, HasSubstr("layer 2"));
}

TEST(CheckMap, NamesLayerAndHead) {
  PrecisionMap map = uniform_map(scheme("kivi"), 3, kK8V4);
  map.layers[1] = LayerPairs::of_heads({kK8V4, kK4V2});
  EXPECT_TRUE(check_map(map, geometry(3, 2, 64)).ok());
  EXPECT_THAT(check_map(map, geometry(3, 4, 64)).error().message,
              HasSubstr("layer 1, KV head 2: the map gives a pair for 2 KV heads, but the layer "
                        "has 4"));
  EXPECT_THAT(check_map(map, geometry(3, 1, 64)).error().message,
              HasSubstr("layer 1, KV head 1: the map gives a pair for 2 KV heads, but the layer "
                        "has 1"));
  map.layers[1] = LayerPairs::of_heads({kK8V4, {Codec::fp8_e4m3, Codec::int4}});
  EXPECT_THAT(check_map(map, geometry(3, 2, 64)).error().message,
              HasSubstr("layer 1, KV head 1: scheme kivi codes keys per channel"));
  map = uniform_map(scheme("kvtuner"), 3, kK8V4);
  map.layers[1] = LayerPairs::of_heads({kK8V4, kK4V2});
  EXPECT_THAT(check_map(map, geometry(3, 2, 64)).error().message,
              HasSubstr("layer 1: scheme kvtuner has one pair for all KV heads"));
  map = uniform_map(scheme("per-token"), 3, {Codec::int8, Codec::int8});
  map.layers[2] = LayerPairs::of_heads({{Codec::int8, Codec::int8}, kK8V4});
  EXPECT_THAT(check_map(map, geometry(3, 2, 7)).error().message,
              HasSubstr("layer 2, KV head 1: head_dim 7"));
}

}  // namespace
}  // namespace kvsweep
