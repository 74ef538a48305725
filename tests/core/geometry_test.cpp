#include "core/geometry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json good_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 576},
          {"num_hidden_layers", 30},
          {"num_attention_heads", 9},
          {"num_key_value_heads", 3},
          {"max_position_embeddings", 8192},
          {"rope_theta", 100000.0}};
}

Result<ModelGeometry> read(const Json& config) {
  const test::TempDir dir;
  dir.write("config.json", config.dump());
  return read_geometry(dir.path().string());
}

TEST(Geometry, ReadsTheShapeOfTheCache) {
  const auto geometry = read(good_config());
  ASSERT_TRUE(geometry.ok()) << geometry.error().message;
  EXPECT_EQ(geometry->family, "llama");
  EXPECT_EQ(geometry->max_context, 8192);
  EXPECT_EQ(geometry->num_layers(), 30);
  EXPECT_EQ(geometry->layers[29], (LayerGeometry{3, 64}));  // 576 / 9
  EXPECT_EQ(geometry->elements_per_token(), 11520);         // 30 * 2 * 3 * 64
}

TEST(Geometry, DefaultsOfHeadsAndHeadDim) {
  Json config = good_config();
  config.erase("num_key_value_heads");
  EXPECT_EQ(read(config)->layers[0].kv_heads, 9);
  config["num_key_value_heads"] = nullptr;
  config["head_dim"] = nullptr;
  EXPECT_EQ(read(config)->layers[0], (LayerGeometry{9, 64}));
  config["head_dim"] = 128;  // larger than hidden / heads, as some models have it
  EXPECT_EQ(read(config)->layers[0].head_dim, 128);
}

TEST(Geometry, DefaultsOfFamilies) {
  Json config = good_config();
  config["architectures"] = {"Gemma2ForCausalLM"};
  config["num_attention_heads"] = 8;
  config.erase("num_key_value_heads");
  EXPECT_EQ(read(config)->layers[0], (LayerGeometry{4, 256}));  // not 576 / 8
  config["num_key_value_heads"] = nullptr;
  EXPECT_EQ(read(config)->layers[0].kv_heads, 8);
  config["architectures"] = {"Qwen3ForCausalLM"};
  EXPECT_EQ(read(config)->layers[0], (LayerGeometry{8, 128}));
}

// Dynamic NTK scaling is for contexts up to factor times the trained one; other types of RoPE are
// already in max_position_embeddings.
TEST(Geometry, ContextOfDynamicRope) {
  Json config = good_config();
  config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.5}};
  EXPECT_EQ(read(config)->max_context, 20480);
  config["rope_scaling"]["type"] = "linear";
  EXPECT_EQ(read(config)->max_context, 8192);
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"rope_type", "dynamic"}, {"factor", 1e300}};
  const auto huge = read(config);
  ASSERT_FALSE(huge.ok());
  EXPECT_THAT(huge.error().message, AllOf(HasSubstr("rope_parameters"), HasSubstr("factor")));
  config["rope_parameters"]["factor"] = 1e6;
  EXPECT_EQ(read(config)->max_context, 1 << 30);
  config["rope_parameters"] = "dynamic";
  EXPECT_THAT(read(config).error().message, HasSubstr("rope_parameters"));
}

TEST(Geometry, EveryBadValueNamesFileAndField) {
  const std::pair<const char*, Json> cases[] = {
      {"num_hidden_layers", 0},
      {"num_hidden_layers", 1000000000},
      {"num_hidden_layers", "30"},
      {"num_hidden_layers", -1},
      {"num_hidden_layers", 30.5},
      {"num_hidden_layers", nullptr},
      {"num_attention_heads", 0},
      {"num_attention_heads", Json::array({9})},
      {"num_key_value_heads", 0},
      {"num_key_value_heads", 2},  // does not divide 9
      {"num_key_value_heads", 18},
      {"hidden_size", 577},
      {"hidden_size", 0},
      {"hidden_size", "wide"},
      {"head_dim", 0},
      {"head_dim", 1000000},
      {"max_position_embeddings", 0},
      {"max_position_embeddings", true},
      {"architectures", "LlamaForCausalLM"},
  };
  for (const auto& [key, value] : cases) {
    Json config = good_config();
    config[key] = value;
    const auto geometry = read(config);
    ASSERT_FALSE(geometry.ok()) << key << " " << value;
    EXPECT_EQ(geometry.error().code, ErrorCode::bad_input);
    EXPECT_THAT(geometry.error().message, AllOf(HasSubstr("config.json"), HasSubstr(key)));
  }
}

TEST(Geometry, EveryMissingKeyIsNamed) {
  for (const char* key : {"architectures", "num_hidden_layers", "num_attention_heads",
                          "hidden_size", "max_position_embeddings"}) {
    Json config = good_config();
    config.erase(key);
    EXPECT_THAT(read(config).error().message, HasSubstr(std::string("\"") + key + "\""));
  }
}

TEST(Geometry, UnsupportedArchitectureIsRefusedByName) {
  Json config = good_config();
  config["architectures"] = {"MambaForCausalLM"};
  EXPECT_THAT(read(config).error().message,
              AllOf(HasSubstr("MambaForCausalLM"), HasSubstr("supported are LlamaForCausalLM")));
}

TEST(Geometry, NoFileNoJsonNoObject) {
  const test::TempDir dir;
  EXPECT_EQ(read_geometry(dir.path().string()).error().code, ErrorCode::not_found);
  dir.write("config.json", "{\"architectures\": [");
  EXPECT_EQ(read_geometry(dir.path().string()).error().code, ErrorCode::bad_input);
  dir.write("config.json", "[]");
  EXPECT_THAT(read_geometry(dir.path().string()).error().message, HasSubstr("expected an object"));
}

TEST(Geometry, JsonRoundTripAndDamage) {
  ModelGeometry geometry = *read(good_config());
  geometry.layers[3] = {1, 128};
  EXPECT_EQ(*geometry_from_json(to_json(geometry)), geometry);
  Json bad = to_json(geometry);
  bad["layers"][2]["head_dim"] = 0;
  EXPECT_FALSE(geometry_from_json(bad).ok());
  bad["layers"] = Json::array();
  EXPECT_FALSE(geometry_from_json(bad).ok());
}

class ModelHash : public ::testing::Test {
 protected:
  void fill(const test::TempDir& dir) {
    dir.write("config.json", good_config().dump());
    dir.write("model.safetensors", "weights");
    dir.write("tokenizer.json", "{}");
    dir.write("chat_template.jinja", "{{ messages }}");
    dir.write("generation_config.json", R"({"eos_token_id": 2})");
  }
  std::string hash(const test::TempDir& dir) {
    const auto result = model_hash(dir.path().string());
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? *result : "";
  }
  test::TempDir dir_;
};

TEST_F(ModelHash, CountsWhatChangesTheTokens) {
  fill(dir_);
  const auto with = [&](const char* tokenizer_config) {
    dir_.write("tokenizer_config.json", tokenizer_config);
    return hash(dir_);
  };
  const std::string plain = with(R"({"model_max_length": 5})");
  EXPECT_EQ(with(R"({"model_max_length": 6, "tokenizer_class": "GPT2Tokenizer"})"), plain);
  const std::string without = with(R"({"add_bos_token": false, "bos_token": "<s>"})");
  EXPECT_NE(without, plain);
  EXPECT_NE(with(R"({"add_bos_token": true, "bos_token": "<s>"})"), without);
  const std::string llama = with(R"({"tokenizer_class": "LlamaTokenizer"})");
  EXPECT_NE(llama, plain);
  EXPECT_NE(with(R"({"tokenizer_class": "LlamaTokenizerFast", "legacy": true})"), llama);
}

TEST_F(ModelHash, MovesWithTheFolderAndIgnoresProvenanceAndSpelling) {
  fill(dir_);
  const test::TempDir other;
  fill(other);
  EXPECT_EQ(hash(dir_), hash(other));
  Json config = good_config();
  config["_name_or_path"] = "somewhere/else";
  config["transformers_version"] = "9.9";
  config["rope_theta"] = 100000;  // the same number, written as an integer
  other.write("config.json", config.dump(4));
  EXPECT_EQ(hash(dir_), hash(other));
}

TEST_F(ModelHash, EveryPartCounts) {
  fill(dir_);
  const std::string before = hash(dir_);
  const std::pair<const char*, const char*> changes[] = {
      {"model.safetensors", "weightz"},
      {"tokenizer.json", "{\"a\":1}"},
      {"chat_template.jinja", "{{ other }}"},
      {"generation_config.json", R"({"eos_token_id": [2, 3]})"},
  };
  for (const auto& [name, text] : changes) {
    const test::TempDir changed;
    fill(changed);
    changed.write(name, text);
    EXPECT_NE(hash(changed), before) << name;
  }
  Json config = good_config();
  config["rope_theta"] = 10000.0;
  dir_.write("config.json", config.dump());
  EXPECT_NE(hash(dir_), before);
}

TEST_F(ModelHash, FolderIsCheckedWithoutReadingTheWeights) {
  EXPECT_THAT(check_model_folder(dir_.path().string()).error().message, HasSubstr("config.json"));
  fill(dir_);
  EXPECT_TRUE(check_model_folder(dir_.path().string()).ok());
  std::filesystem::remove(dir_.path() / "tokenizer.json");
  EXPECT_THAT(check_model_folder(dir_.path().string()).error().message,
              HasSubstr("tokenizer.json is missing"));
  fill(dir_);
  std::filesystem::remove(dir_.path() / "model.safetensors");
  dir_.write("model.safetensors.index.json", R"({"weight_map": {"a": "m-1.safetensors"}})");
  EXPECT_THAT(check_model_folder(dir_.path().string()).error().message,
              HasSubstr("m-1.safetensors is missing"));
}

TEST_F(ModelHash, ShardsOfAnIndex) {
  fill(dir_);
  std::filesystem::remove(dir_.path() / "model.safetensors");
  dir_.write(
      "model.safetensors.index.json",
      R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-1.safetensors"}})");
  dir_.write("m-1.safetensors", "one");
  EXPECT_THAT(model_hash(dir_.path().string()).error().message, HasSubstr("m-2.safetensors"));
  dir_.write("m-2.safetensors", "two");
  const std::string before = hash(dir_);
  dir_.write("m-2.safetensors", "2");
  EXPECT_NE(hash(dir_), before);
  dir_.write("model.safetensors.index.json", R"({"weight_map": {"a": "../elsewhere"}})");
  EXPECT_THAT(model_hash(dir_.path().string()).error().message,
              HasSubstr("not the name of a file in the same folder"));
  dir_.write("model.safetensors.index.json", R"({"weight_map": {}})");
  EXPECT_FALSE(model_hash(dir_.path().string()).ok());
  std::filesystem::remove(dir_.path() / "model.safetensors.index.json");
  EXPECT_THAT(model_hash(dir_.path().string()).error().message, HasSubstr("no model.safetensors"));
}

}  // namespace
}  // namespace kvsweep
