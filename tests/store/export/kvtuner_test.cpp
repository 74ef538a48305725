// KVTuner's YAML: a published map, our own, and every refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "store/export/exporter.hpp"
#include "tests/store/samples.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

using test::must;
using ::testing::AllOf;
using ::testing::HasSubstr;

const SchemeOptions kKivi{"kivi", std::nullopt, std::nullopt, std::nullopt};

// Llama-3.1-8B C3.25 of KVTuner (kivi 4_1): KV2 {0,4,25,27}; KV4 {1-3,7,29,31}; K8V4 {13,17};
// K4V2 elsewhere: (4*2 + 6*4 + 2*6 + 20*3) / 32 = 104 / 32 = 3.25 bits.
std::vector<std::pair<int, int>> published_bits() {
  std::vector<std::pair<int, int>> bits(32, {4, 2});
  for (const int layer : {0, 4, 25, 27}) bits[layer] = {2, 2};
  for (const int layer : {1, 2, 3, 7, 29, 31}) bits[layer] = {4, 4};
  for (const int layer : {13, 17}) bits[layer] = {8, 4};
  return bits;
}

std::string published_yaml() {
  std::string text;
  const auto bits = published_bits();
  for (size_t i = 0; i < bits.size(); ++i) {
    text += std::to_string(i) + ":\n  nbits_key: " + std::to_string(bits[i].first) +
            "\n  nbits_value: " + std::to_string(bits[i].second) + "\n";
  }
  return text;
}

class KvtunerTest : public ::testing::Test {
 protected:
  Result<ImportedMap> import(const std::string& text,
                             const std::optional<SchemeOptions>& scheme = kKivi) {
    path_ = dir_.write("map.yaml", text);
    return import_map(path_, "", scheme);
  }
  test::TempDir dir_;
  std::string path_;
};

TEST_F(KvtunerTest, ReadsThePublishedLlamaMap) {
  const ImportedMap imported = must(import(published_yaml()));
  ASSERT_EQ(imported.num_layers, 32);
  EXPECT_EQ(nominal_bits(imported.map, test::sample_geometry(32, 8, 128), BaseType::fp16), 3.25);
  const auto bits = published_bits();
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(info(imported.map.layers[i].of(0).k).bits, bits[i].first) << i;
    EXPECT_EQ(info(imported.map.layers[i].of(0).v).bits, bits[i].second) << i;
  }
  EXPECT_EQ(imported.map.scheme, must(make_scheme(kKivi)));
}

TEST_F(KvtunerTest, WritesKvtunersLayout) {
  ExportInput input;
  input.geometry = test::sample_geometry(3);
  input.map = {
      test::sample_scheme("kivi"),
      {{Codec::int8, Codec::int8}, {Codec::int4, Codec::int4}, {Codec::int4, Codec::int2}}};
  const ExportOutput output = must(export_map("kvtuner", input));
  EXPECT_EQ(output.text,
            "0: {nbits_key: 8, nbits_value: 8}\n"
            "1: {nbits_key: 4, nbits_value: 4}\n"
            "2: {nbits_key: 4, nbits_value: 2}\n");
  EXPECT_TRUE(output.lost.empty());
  const Json sidecar = must(parse_json(output.sidecar, "sidecar"));
  EXPECT_EQ(sidecar["map_id"], map_id(input.map));
  EXPECT_EQ(sidecar["yaml_sha256"], sha256_hex(output.text));
  EXPECT_EQ(sidecar["policy"]["residual_tokens"], 32);
  EXPECT_EQ(sidecar["accuracy"], "not_transferred");
}

// No head is rounded down: K8V2|K4V4|K2V2 becomes K8V4. What was written, and not the map with
// heads, is what the sidecar belongs to.
TEST_F(KvtunerTest, PairsPerHeadAreRaisedAndReported) {
  ExportInput input;
  input.geometry = test::sample_geometry(2, 3);
  input.map = uniform_map(test::sample_scheme(), 2, {Codec::int4, Codec::int4});
  PrecisionMap raised = input.map;
  raised.layers[1] = {Codec::int8, Codec::int4};
  input.map.layers[1] = LayerPairs::of_heads(
      {{Codec::int8, Codec::int2}, {Codec::int4, Codec::int4}, {Codec::int2, Codec::int2}});
  const ExportOutput output = must(export_map("kvtuner", input));
  EXPECT_EQ(output.text,
            "0: {nbits_key: 4, nbits_value: 4}\n"
            "1: {nbits_key: 8, nbits_value: 4}\n");
  ASSERT_EQ(output.lost.size(), 1u);
  EXPECT_THAT(output.lost[0], HasSubstr("per KV head"));
  dir_.write("map.yaml.sidecar.json", output.sidecar);
  EXPECT_EQ(must(import(output.text, std::nullopt)).map, raised);
}

TEST_F(KvtunerTest, UnquantizedLayersCannotBeWritten) {
  ExportInput input;
  input.geometry = test::sample_geometry(3);
  input.map = uniform_map(test::sample_scheme(), 3, {Codec::int8, Codec::int4});
  input.map.layers[1] = {Codec::base, Codec::int4};
  input.map.layers[2] = {Codec::int8, Codec::base};
  const auto output = export_map("kvtuner", input);
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.error().message, HasSubstr("layers 1, 2"));
}

TEST_F(KvtunerTest, SchemeComesFromTheOptionOrTheSidecar) {
  const auto neither = import("0: {nbits_key: 8, nbits_value: 4}\n", std::nullopt);
  ASSERT_FALSE(neither.ok());
  EXPECT_THAT(neither.error().message, AllOf(HasSubstr("only bits"), HasSubstr("--scheme")));

  ExportInput input;
  input.geometry = test::sample_geometry(1);
  SchemeOptions options{"kivi", 64, 128, std::nullopt};
  input.map = {must(make_scheme(options)), {{Codec::int8, Codec::int4}}};
  const ExportOutput output = must(export_map("kvtuner", input));
  dir_.write("map.yaml.sidecar.json", output.sidecar);
  EXPECT_EQ(must(import(output.text, std::nullopt)).map, input.map);
  const auto both = import(output.text, SchemeOptions{});
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(both.error().message, HasSubstr("leave out --scheme"));
  const auto edited = import("0: {nbits_key: 4, nbits_value: 4}\n", std::nullopt);
  ASSERT_FALSE(edited.ok());
  EXPECT_THAT(edited.error().message, HasSubstr("belongs to another map"));
  dir_.write("map.yaml.sidecar.json", "{\"schema\": \"other\"}");
  EXPECT_FALSE(import(output.text, std::nullopt).ok());
}

struct Broken {
  const char* name;
  const char* text;
  std::vector<const char*> says;
};

const Broken kBroken[] = {
    {"Gap",
     "0: {nbits_key: 8, nbits_value: 4}\n2: {nbits_key: 8, nbits_value: 4}\n",
     {"layer 1 is missing"}},
    {"Duplicate",
     "0: {nbits_key: 8, nbits_value: 4}\n0: {nbits_key: 4, nbits_value: 4}\n",
     {":2:", "layer 0 appears twice"}},
    {"Quoted", "'0': {nbits_key: 8, nbits_value: 4}\n", {":1:", "quotes"}},
    {"DoubleQuoted", "\"0\": {nbits_key: 8, nbits_value: 4}\n", {":1:", "quotes"}},
    {"Name", "layer0: {nbits_key: 8, nbits_value: 4}\n", {":1:", "layer0"}},
    {"Negative", "-1: {nbits_key: 8, nbits_value: 4}\n", {":1:", "layer -1"}},
    {"Huge", "99999999999: {nbits_key: 8, nbits_value: 4}\n", {":1:", "99999999999"}},
    {"Large", "5000: {nbits_key: 8, nbits_value: 4}\n", {":1:", "5000"}},
    {"Bits", "0: {nbits_key: 5, nbits_value: 4}\n", {"layer 0", "nbits_key is 5", "8, 4, 3, 2"}},
    {"Float", "0: {nbits_key: 8, nbits_value: 4.0}\n", {"layer 0", "nbits_value", "4.0"}},
    {"Missing", "0: {nbits_key: 8}\n", {"layer 0", "has no nbits_value"}},
    {"Unknown", "0: {nbits_key: 8, nbits_value: 4, group: 32}\n", {"layer 0", "\"group\""}},
    {"Twice", "0: {nbits_key: 8, nbits_value: 4, nbits_key: 2}\n", {"layer 0", "twice"}},
    {"PerHead", "0: [{nbits_key: 8, nbits_value: 4}]\n", {"layer 0", "per head"}},
    {"List", "- {nbits_key: 8, nbits_value: 4}\n", {"layer numbers"}},
    {"NotYaml", "0: {nbits_key: 8, nbits_value: 4\n1: }{\n", {"not valid YAML"}},
};

class KvtunerRefusal : public ::testing::TestWithParam<Broken> {};

TEST_P(KvtunerRefusal, NamesThePlace) {
  test::TempDir dir;
  const std::string path = dir.write("m.yaml", GetParam().text);
  const auto imported = import_map(path, "", kKivi);
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.error().code, ErrorCode::bad_input);
  EXPECT_THAT(imported.error().message, HasSubstr(path));
  for (const char* part : GetParam().says) EXPECT_THAT(imported.error().message, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(All, KvtunerRefusal, ::testing::ValuesIn(kBroken),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(KvtunerTest, DeepNestingIsRefused) {
  EXPECT_FALSE(import("nbits_key: " + std::string(200000, '[')).ok());
  EXPECT_FALSE(import("nbits_key: " + std::string(200000, '{')).ok());
}

TEST(Kvtuner, ASchemeThatCannotStoreTheCodesIsRefused) {
  test::TempDir dir;
  const std::string path = dir.write("m.yaml", "0: {nbits_key: 2, nbits_value: 4}\n");
  SchemeOptions options;
  options.name = "fp8";
  const auto imported = import_map(path, "kvtuner", options);
  ASSERT_FALSE(imported.ok());
  EXPECT_THAT(imported.error().message, HasSubstr("layer 0: scheme fp8 knows 8-bit floats only"));
}

}  // namespace
}  // namespace kvsweep::store
