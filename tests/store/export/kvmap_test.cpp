// The kvmap file: its contents, a file of another tool, and every refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.hpp"
#include "store/export/exporter.hpp"
#include "tests/store/samples.hpp"
#include "tests/support/gguf_writer.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

using test::must;
using ::testing::AllOf;
using ::testing::HasSubstr;

ExportInput sample_input() {
  ExportInput input;
  input.geometry = test::sample_geometry(4, 2, 64);
  input.map = uniform_map(test::sample_scheme("per-token"), 4, {Codec::int8, Codec::int4});
  input.context = 64;
  return input;
}

Json written(const ExportInput& input) {
  return must(parse_json(must(export_map("kvmap", input)).text, "test"));
}

class KvmapTest : public ::testing::Test {
 protected:
  Result<ImportedMap> import(const Json& json) { return import_text(json.dump()); }
  Result<ImportedMap> import_text(const std::string& text) {
    return import_map(dir_.write("m.kvmap.json", text), "", std::nullopt);
  }
  test::TempDir dir_;
};

// By hand, per layer and 64 tokens (one page) of 2 heads x 64: keys 8192 B of codes and one
// 4-byte parameter pair per row, 512 B; values 4096 + 512 B. Four layers: 53248 B. 1024 elements
// per token: 53248 * 8 / (64 * 1024) = 6.5 bits, also the mean of 8 + 32/64 and 4 + 32/64.
TEST_F(KvmapTest, SaysWhatTheMapIs) {
  ExportInput input = sample_input();
  input.map.layers[2] = {};
  input.search = {{"study", "nightly/alpha"}, {"trial", 17}, {"seed", 7}};
  input.evidence.push_back({"gsm8k", "test", "exact_match", 1319, 0.742, 0.736, "cpu-avx2"});
  const Json json = written(input);
  EXPECT_EQ(json["schema"], "kvmap");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["map_id"], map_id(input.map));
  EXPECT_EQ(json["geometry"]["num_layers"], 4);
  EXPECT_EQ(json["geometry"]["kv_layers"], Json({0, 1, 2, 3}));
  EXPECT_EQ(json["geometry"]["kv_heads"], 2);
  EXPECT_EQ(json["geometry"]["head_dim_k"], 64);
  const Json& layer = json["layers"][3];
  EXPECT_EQ(layer["index"], 3);
  EXPECT_EQ(layer["module"], "model.layers.3.self_attn");
  const Json& v = json["formats"][layer["v"].get<std::string>()];
  EXPECT_EQ(v["codec"], "affine-int");
  EXPECT_EQ(v["bits"], 4);
  EXPECT_EQ(v["axis"], "token");
  EXPECT_EQ(v["group"], "head");
  EXPECT_EQ(v["scale"], "fp16");
  EXPECT_EQ(v["zero"], "fp16");
  EXPECT_EQ(v["packing"], "le-nibble");
  EXPECT_EQ(v["effective_bits"], 4.5);
  EXPECT_EQ(json["layers"][2]["k"], "fp16");
  EXPECT_EQ(json["formats"]["fp16"]["effective_bits"], 16);
  EXPECT_EQ(json["policy"]["residual_tokens"], 0);
  EXPECT_EQ(json["policy"]["sink_tokens"], 0);
  EXPECT_EQ(json["policy"]["prefill_quantized"], true);
  EXPECT_EQ(json["policy"]["requant"], "append-only");
  EXPECT_EQ(json["search"]["tool"], "kvsweep");
  EXPECT_EQ(json["search"]["trial"], 17);
  EXPECT_EQ(json["evidence"][0]["n"], 1319);
  EXPECT_NEAR(json["evidence"][0]["delta"].get<double>(), -0.006, 1e-12);
  EXPECT_EQ(json["exports"], Json::array());
}

TEST_F(KvmapTest, CountsTheCost) {
  const Json cost = written(sample_input())["cost"];
  EXPECT_EQ(cost["bytes"], 53248);
  EXPECT_EQ(cost["nominal_bits"], 6);
  EXPECT_EQ(cost["effective_bits"], 6.5);
  EXPECT_EQ(cost["bytes_per_token"], 832);  // 53248 / 64
  EXPECT_EQ(cost["context"], 64);
}

// A reference scheme says that it codes again, and with what arithmetic; a file that contradicts
// its scheme is refused.
TEST_F(KvmapTest, ReferenceSchemesSayWhatTheyReproduce) {
  ExportInput input = sample_input();
  input.map = uniform_map(test::sample_scheme("kvtuner-bf16"), 4, {Codec::int8, Codec::int4});
  Json json = written(input);
  const Json v = json["formats"][json["layers"][0]["v"].get<std::string>()];
  EXPECT_EQ(v["arithmetic"], "kvtuner-bf16");
  EXPECT_EQ(v["scale"], "bf16");
  EXPECT_EQ(v["zero"], "bf16");
  EXPECT_EQ(v["effective_bits"], 4.5);
  EXPECT_EQ(json["policy"]["requant"], "whole-history");
  EXPECT_EQ(json["policy"]["scheme"]["keys"]["rule"], "recode");
  EXPECT_EQ(must(import(json)).map, input.map);
  json["policy"]["requant"] = "append-only";
  EXPECT_THAT(import(json).error().message, HasSubstr("\"requant\" is \"append-only\""));
  json = written(sample_input());
  json["policy"]["requant"] = "whole-history";
  EXPECT_THAT(import(json).error().message, HasSubstr("codes a token once"));
}

TEST_F(KvmapTest, LayersMayDiffer) {
  ExportInput input = sample_input();
  input.geometry.layers[1] = {4, 128};
  const Json json = written(input);
  EXPECT_EQ(json["geometry"]["kv_heads"], Json({2, 4, 2, 2}));
  EXPECT_EQ(json["geometry"]["head_dim_v"], Json({64, 128, 64, 64}));
  // One group per head: 8 + 32/128 where heads are twice as long.
  EXPECT_EQ(json["formats"][json["layers"][1]["k"].get<std::string>()]["effective_bits"], 8.25);
  EXPECT_EQ(must(import(json)).geometry->layers, input.geometry.layers);
}

// Layer 1 is K8V4|K4V4: its keys list a format per head, its values one for both. By hand, as
// above: its keys are now 64 * 64 + 64 * 4 = 4352 B and 64 * 32 + 64 * 4 = 2304 B, 2048 B less.
TEST_F(KvmapTest, HeadsMayDiffer) {
  ExportInput input = sample_input();
  input.map.layers[1] =
      LayerPairs::of_heads({{Codec::int8, Codec::int4}, {Codec::int4, Codec::int4}});
  const Json json = written(input);
  EXPECT_EQ(json["layers"][1]["k"], Json({"int8-token-ghead", "int4-token-ghead"}));
  EXPECT_EQ(json["layers"][1]["v"], "int4-token-ghead");
  EXPECT_EQ(json["layers"][0]["k"], "int8-token-ghead");
  EXPECT_EQ(json["must_understand"].back(), "head_formats");
  EXPECT_EQ(json["cost"]["bytes"], 53248 - 2048);
  EXPECT_EQ(json["cost"]["nominal_bits"], 5.75);    // (7 * 12 + 8) / 16
  EXPECT_EQ(json["cost"]["effective_bits"], 6.25);  // 51200 * 8 / (64 * 1024)
  const ImportedMap imported = must(import(json));
  EXPECT_EQ(imported.map, input.map);
  EXPECT_EQ(map_id(imported.map), map_id(input.map));
  // A file without lists does not ask readers for more than before.
  EXPECT_EQ(written(sample_input())["must_understand"],
            Json({"formats", "layers", "geometry", "policy"}));
}

TEST_F(KvmapTest, ListsOfHeadsAreChecked) {
  ExportInput input = sample_input();
  input.map.layers[1] =
      LayerPairs::of_heads({{Codec::int8, Codec::int4}, {Codec::int4, Codec::int4}});
  const Json good = written(input);
  const auto error = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    const auto imported = import(bad);
    return imported.ok() ? "" : imported.error().message;
  };
  EXPECT_THAT(error("/layers/1/k", Json({"int8-token-ghead"})),
              HasSubstr("layer 1: \"k\" lists 1 formats, but the layer has 2 KV heads"));
  EXPECT_THAT(error("/layers/1/k/1", "int4-token-gheat"),
              AllOf(HasSubstr("layer 1, KV head 1"), HasSubstr("did you mean")));
  EXPECT_THAT(error("/layers/1/k/1", 4), HasSubstr("layer 1"));
  EXPECT_THAT(error("/layers/1/k", Json::array()), HasSubstr("lists 0 formats"));
  EXPECT_THAT(error("/layers/1/k/1", "int8-token-ghead"), HasSubstr("nominal_bits"));  // edited
  // Heads that agree may be listed too.
  EXPECT_EQ(error("/layers/0/k", Json({"int8-token-ghead", "int8-token-ghead"})), "");
}

// Of another tool, which counts the mean of the formats: K (9 + 5) / 2, V 3 -> (7 + 3) / 2 = 5.
TEST_F(KvmapTest, HeadsOfAForeignFile) {
  const char* const text = R"({
 "schema":"kvmap","schema_version":1,"must_understand":["formats","layers","head_formats"],
 "geometry":{"num_layers":1,"kv_heads":2,"head_dim_k":128,"head_dim_v":128},
 "formats":{
  "k8":{"codec":"affine-int","bits":8,"axis":"channel","group":32,"effective_bits":9.0},
  "k4":{"codec":"affine-int","bits":4,"axis":"channel","group":32,"effective_bits":5.0},
  "v2":{"codec":"affine-int","bits":2,"axis":"token","group":32,"effective_bits":3.0}},
 "policy":{"residual_tokens":32,"sink_tokens":0,"prefill_quantized":false},
 "layers":[{"index":0,"k":["k8","k4"],"v":"v2"}],
 "cost":{"nominal_bits":4.0,"effective_bits":5.0}})";
  const ImportedMap imported = must(import_text(text));
  EXPECT_EQ(summary(imported.map), "K8V2|K4V2");
  EXPECT_EQ(imported.map.scheme.name, "kivi");
}

// The running example of the reference page: written by another tool, without our scheme. K per
// channel and V per token in groups of 32: bits + 1; 50 effective bits over 8 sides.
constexpr const char* kForeign = R"({
 "schema":"kvmap","schema_version":1,"must_understand":["formats","layers","geometry"],
 "model":{"id":"org/name","revision":"abc","config_sha256":"00","weights":[],"weight_quant":"none",
          "preceding_quantizers_sha256":null},
 "geometry":{"num_layers":4,"kv_layers":[0,1,2,3],"kv_heads":8,"head_dim_k":128,"head_dim_v":128,
             "attention":"gqa","kv_shared":{}},
 "formats":{
  "k8":{"codec":"affine-int","bits":8,"symmetric":false,"axis":"channel","group":32,"scale":"fp16",
        "zero":"fp16","rotation":"none","rope":"post","effective_bits":9.0},
  "k4":{"codec":"affine-int","bits":4,"axis":"channel","group":32,"packing":"le-nibble",
        "effective_bits":5.0},
  "v8":{"codec":"affine-int","bits":8,"axis":"token","group":32,"effective_bits":9.0},
  "v4":{"codec":"affine-int","bits":4,"axis":"token","group":32,"effective_bits":5.0},
  "v2":{"codec":"affine-int","bits":2,"axis":"token","group":32,"effective_bits":3.0}},
 "policy":{"residual_tokens":32,"sink_tokens":0,"prefill_quantized":true,"requant":"append-only"},
 "layers":[
  {"index":3,"module":"model.layers.3.self_attn","type":"full","k":"k4","v":"v2"},
  {"index":0,"module":"model.layers.0.self_attn","type":"full","k":"k8","v":"v8"},
  {"index":1,"module":"model.layers.1.self_attn","type":"full","k":"k4","v":"v4"},
  {"index":2,"module":"model.layers.2.self_attn","type":"full","k":"k8","v":"v4"}],
 "cost":{"nominal_bits":5.25,"effective_bits":6.25,"bytes_per_token":6400},
 "search":{"tool":"other"},"evidence":[],"exports":[],"x-other":{"anything":[1]}})";

TEST_F(KvmapTest, ReadsAnotherToolsFile) {
  const ImportedMap imported = must(import_text(kForeign));
  const SchemeOptions kivi{
      .name = "kivi", .group = 32, .residual = 32, .prefill = Prefill::stepwise};
  EXPECT_EQ(imported.map.scheme, must(make_scheme(kivi)));
  EXPECT_EQ(imported.map.layers, (std::vector<LayerPairs>{{Codec::int8, Codec::int8},
                                                          {Codec::int4, Codec::int4},
                                                          {Codec::int8, Codec::int4},
                                                          {Codec::int4, Codec::int2}}));
  EXPECT_EQ(imported.model_hash, "");
  EXPECT_EQ(imported.num_layers, 4);
  EXPECT_FALSE(imported.base.has_value());
}

// A map with calibrated constants says its scales, as engines read them, and is refused by name
// without what they follow from.
TEST_F(KvmapTest, CalibratedConstantsAreNeverAssumed) {
  SchemeOptions options;
  options.name = "fp8";
  options.ranges = Ranges{"hash", {448.0f, 20.1f}, {3.0f, 0.5f}};
  ExportInput input;
  input.geometry = test::sample_geometry(2);
  input.map = uniform_map(must(make_scheme(options)), 2, {Codec::fp8_e4m3, Codec::fp8_e4m3});
  const std::string text = must(export_map("kvmap", input)).text;
  EXPECT_EQ(must(import_text(text)).map, input.map);
  Json file = Json::parse(text);
  EXPECT_EQ(file["layers"][0]["k_scale"], 1.0);
  EXPECT_EQ(file["layers"][1]["k_scale"].get<float>(), 20.1f / 448.0f);
  Json missing = file;
  missing["policy"]["scheme"].erase("ranges");
  const auto without = import_text(missing.dump());
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message, HasSubstr("needs a calibrated constant"));
  EXPECT_THAT(without.error().message, HasSubstr("layer 0"));
  file["layers"][1]["v_scale"] = 1.0;
  const auto edited = import_text(file.dump());
  ASSERT_FALSE(edited.ok());
  EXPECT_THAT(edited.error().message, HasSubstr("layer 1: \"v_scale\" is 1.0"));
}

struct Refusal {
  const char* name;
  const char* pointer;  // JSON pointer of what is replaced; value "-" removes it
  const char* value;
  std::vector<const char*> says;
};

const Refusal kRefusals[] = {
    {"NewerMajor", "/schema_version", "2", {"\"schema_version\" is 2"}},
    {"MustUnderstand", "/must_understand/0", "\"sinks\"", {"must_understand", "\"sinks\""}},
    {"UnknownKey", "/layerz", "[]", {"\"layerz\"", "did you mean \"layers\""}},
    {"UnknownFormatKey", "/formats/k4/outliers", "3", {"format \"k4\"", "\"outliers\""}},
    {"Gap", "/layers/1", "-", {"layer 0 is missing"}},
    {"Duplicate", "/layers/1/index", "3", {"layer 3 appears twice"}},
    {"OutOfRange", "/layers/1/index", "4", {"\"index\" is 4"}},
    {"NegativeIndex", "/layers/1/index", "-1", {"\"index\" is -1"}},
    {"DanglingName", "/layers/2/v", "\"v44\"", {"layer 1", "\"v44\"", "did you mean \"v4\""}},
    {"BareBits", "/layers/2/v", "4", {"layer 1", "\"v\" is 4"}},
    {"EffectiveBits", "/formats/k4/effective_bits", "4.5", {"format \"k4\"", "4.5", "5.0"}},
    {"CostBits", "/cost/effective_bits", "6", {"cost", "\"effective_bits\" is 6", "6.25"}},
    {"NominalBits", "/cost/nominal_bits", "5", {"cost", "\"nominal_bits\" is 5", "5.25"}},
    {"MapId", "/map_id", "\"0123456789abcdef0\"", {"\"map_id\" is 0123456789abcdef", "edited"}},
    {"OtherBits", "/formats/k4/bits", "5", {"format \"k4\"", "5 bits", "8, 4, 3, 2"}},
    {"OtherCodec", "/formats/k4/codec", "\"fp8\"", {"format \"k4\"", "\"fp8\""}},
    {"OtherGroup", "/formats/k4/group", "48", {"format \"k4\"", "48"}},
    {"HeadAlongChannel", "/formats/k4/group", "\"head\"", {"format \"k4\"", "head"}},
    {"Rotation", "/formats/k4/rotation", "\"random\"", {"format \"k4\"", "random", "hadamard"}},
    {"MixedRotations", "/formats/k4/rotation", "\"hadamard\"", {"layer 1", "-had"}},
    {"MixedGroups", "/formats/k4/group", "64", {"format \"k4\"", "4.5"}},
    {"MixedAxes", "/formats/v4/axis", "\"channel\"", {"layer 1", "channel"}},
    {"Symmetric", "/formats/v4/symmetric", "true", {"format \"v4\"", "4.5"}},
    {"Sinks", "/policy/sink_tokens", "65", {"sink_tokens", "65"}},
    {"Requant", "/policy/requant", "\"full\"", {"requant", "\"full\""}},
    {"Residual", "/policy/residual_tokens", "33", {"policy", "33"}},
    {"NoPolicy", "/policy", "-", {"\"policy\" is missing"}},
    {"SharedCaches", "/geometry/kv_shared", "{\"1\":0}", {"kv_shared"}},
    {"HeadDims", "/geometry/head_dim_v", "64", {"head_dim_v"}},
    {"LayerWithoutKv", "/geometry/kv_layers", "[0,1,3]", {"kv_layers", "layer 2"}},
    {"ListLength", "/geometry/kv_heads", "[8,8]", {"kv_heads", "2 entries for 4"}},
    {"Sliding", "/layers/0/type", "\"sliding\"", {"layer 3", "sliding"}},
    {"NoLayers", "/layers", "{}", {"\"layers\""}},
    {"HugeCount", "/geometry/num_layers", "1000000000", {"num_layers"}},
};

class KvmapRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(KvmapRefusal, NamesThePlace) {
  const Refusal& refusal = GetParam();
  Json json = Json::parse(kForeign);
  const Json::json_pointer pointer(refusal.pointer);
  if (std::string(refusal.value) == "-") {
    Json& parent = json.at(pointer.parent_pointer());
    if (parent.is_array()) {
      parent.erase(std::stoul(pointer.back()));
    } else {
      parent.erase(pointer.back());
    }
  } else {
    json[pointer] = Json::parse(refusal.value);
  }
  test::TempDir dir;
  const std::string path = dir.write("m.json", json.dump());
  const auto imported = import_map(path, "kvmap", std::nullopt);
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.error().code, ErrorCode::bad_input);
  EXPECT_THAT(imported.error().message, HasSubstr(path));
  for (const char* part : refusal.says) EXPECT_THAT(imported.error().message, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(All, KvmapRefusal, ::testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(KvmapTest, SchemesThatCannotRunAreRefused) {
  ExportInput input = sample_input();
  input.map.scheme = test::sample_scheme("kivi");
  Json json = written(input);
  json["policy"]["scheme"]["values"]["keep"] = 5;
  auto imported = import(json);
  ASSERT_FALSE(imported.ok());
  EXPECT_THAT(imported.error().message, AllOf(HasSubstr("\"keep\":5"), HasSubstr("\"keep\":33")));
  json = written(input);
  json["policy"]["scheme"]["name"] = "kivy";
  imported = import(json);
  ASSERT_FALSE(imported.ok());
  EXPECT_THAT(imported.error().message, HasSubstr("did you mean kivi?"));
}

TEST_F(KvmapTest, BaseTypesMustAgree) {
  ExportInput input = sample_input();
  input.map.layers[0] = {Codec::base, Codec::int4};
  Json json = written(input);
  json["formats"]["fp16"]["type"] = "bf16";
  const auto imported = import(json);
  ASSERT_FALSE(imported.ok());
  EXPECT_THAT(imported.error().message, AllOf(HasSubstr("bf16"), HasSubstr("fp16")));
}

TEST_F(KvmapTest, BrokenJsonSaysWhere) {
  const std::string text(kForeign);
  const auto cut = import_text(text.substr(0, text.size() / 2));
  ASSERT_FALSE(cut.ok());
  EXPECT_THAT(cut.error().message, AllOf(HasSubstr("not valid JSON"), HasSubstr("line")));
}

// SHA-256 of {"a":[1,"x"],"b":1}, by another program.
TEST(DocumentHash, IsThatOfTheCanonicalForm) {
  const std::string expected = "a88dede55f330dbae7d6c99cb78c43213f114625ed11c8fd0b769d117c06bb50";
  EXPECT_EQ(must(document_hash("{\"b\": 1,\n \"a\": [1.0, \"x\"]}\n")),
            must(document_hash("{\"a\":[1,\"x\"],\"b\":1}")));
  EXPECT_EQ(must(document_hash("{\"b\":1,\"a\":[1.0,\"x\"]}")), expected);
  EXPECT_FALSE(document_hash("{").ok());
}

TEST_F(KvmapTest, IsBoundToTheWeights) {
  dir_.write("tiny/config.json", R"({"architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4, "num_attention_heads": 2, "hidden_size": 128,
    "max_position_embeddings": 128})");
  dir_.write("tiny/model.safetensors", "weights");
  dir_.write("tiny/tokenizer.json", "{}");
  ExportInput input = sample_input();
  input.model_dir = dir_.file("tiny");
  input.model_hash = must(model_hash(input.model_dir));
  const Json model = written(input)["model"];
  EXPECT_EQ(model["id"], "tiny");
  EXPECT_EQ(model["hash"], input.model_hash);
  EXPECT_EQ(model["weights"],
            Json({{{"file", "model.safetensors"}, {"sha256", sha256_hex("weights")}}}));
  EXPECT_EQ(model["weight_quant"], "none");
  dir_.write("tiny/model.safetensors", "other weights");
  const auto refused = export_map("kvmap", input);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr(input.model_dir), HasSubstr(input.model_hash.substr(0, 12))));
}

// A model of one file is bound by the hash of that file.
TEST_F(KvmapTest, IsBoundToAGgufFile) {
  test::GgufWriter writer;
  writer.tensor("token_embd.weight", {2, 2}, {1, 2, 3, 4});
  ExportInput input = sample_input();
  input.model_dir = dir_.write("tiny.gguf", writer.bytes());
  input.model_hash = sha256_hex(writer.bytes());
  const Json model = written(input)["model"];
  EXPECT_EQ(model["id"], "tiny.gguf");
  EXPECT_EQ(model["hash"], input.model_hash);
  EXPECT_EQ(model["weights"], Json::array({{{"file", "tiny.gguf"}, {"sha256", input.model_hash}}}));
  EXPECT_EQ(model["weight_quant"], "gguf");
  EXPECT_FALSE(model.contains("config_sha256"));
}

}  // namespace
}  // namespace kvsweep::store
