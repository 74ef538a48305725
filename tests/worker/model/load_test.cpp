// What load_model says about folders that are incomplete, damaged or not supported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/worker/model/support.hpp"
#include "worker/model/model.hpp"

namespace kvsweep {
namespace {

using test::load_error;
using test::ModelCopy;
using testing::AllOf;
using testing::HasSubstr;

TEST(Load, GeometryIsThatOfTheCoordinator) {
  for (const std::string variant : {"tied_linear", "untied_llama3", "plain"}) {
    const auto model = model::load_model(test::tiny_model(variant), {});
    ASSERT_TRUE(model.ok()) << model.error().message;
    const auto geometry = read_geometry(test::tiny_model(variant));
    ASSERT_TRUE(geometry.ok()) << geometry.error().message;
    EXPECT_EQ((*model)->geometry(), *geometry) << variant;
    EXPECT_EQ((*model)->vocab_size(), 67);
  }
}

struct ConfigCase {
  std::string name;
  std::string field;
  Json value;  // discarded: the field is removed
  std::vector<std::string> parts;
};

class BadConfig : public testing::TestWithParam<ConfigCase> {};

TEST_P(BadConfig, IsRefusedByName) {
  ModelCopy copy("tied_linear");
  copy.edit_config([](Json& config) {
    const ConfigCase& one = GetParam();
    if (one.value.is_discarded()) {
      config.erase(one.field);
    } else {
      if (one.field == "rope_parameters") config.erase("rope_scaling");
      config[one.field] = one.value;
    }
  });
  const std::string message = load_error(copy.dir());
  EXPECT_THAT(message, HasSubstr(copy.path("config.json")));
  for (const std::string& part : GetParam().parts) EXPECT_THAT(message, HasSubstr(part));
}

const Json kRemoved = Json(Json::value_t::discarded);

INSTANTIATE_TEST_SUITE_P(
    Fields, BadConfig,
    testing::Values(
        ConfigCase{"architecture",
                   "architectures",
                   Json::array({"GPT2LMHeadModel"}),
                   {"GPT2LMHeadModel", "LlamaForCausalLM"}},
        ConfigCase{"no_architecture", "architectures", kRemoved, {"architectures is missing"}},
        ConfigCase{"act", "hidden_act", "gelu", {"hidden_act", "gelu", "silu"}},
        ConfigCase{"no_hidden", "hidden_size", kRemoved, {"hidden_size is missing"}},
        ConfigCase{"text_hidden", "hidden_size", "big", {"hidden_size", "big", "whole number"}},
        ConfigCase{"huge", "hidden_size", 1e300, {"hidden_size"}},
        ConfigCase{"negative", "num_hidden_layers", -1, {"num_hidden_layers is -1"}},
        ConfigCase{"unsigned", "vocab_size", 18446744073709551615u, {"vocab_size"}},
        ConfigCase{"odd_head", "head_dim", 13, {"head_dim is 13", "even"}},
        ConfigCase{"kv_heads", "num_key_value_heads", 2, {"num_attention_heads is 3", "2"}},
        ConfigCase{"eps", "rms_norm_eps", 0, {"rms_norm_eps is 0"}},
        ConfigCase{"rope",
                   "rope_scaling",
                   Json{{"rope_type", "proportional"}, {"factor", 2.0}},
                   {"rope_scaling.rope_type", "proportional", "llama3"}},
        ConfigCase{
            "factor", "rope_scaling", Json{{"type", "linear"}}, {"rope_scaling.factor is missing"}},
        ConfigCase{"bands",
                   "rope_parameters",
                   Json{{"rope_type", "llama3"},
                        {"factor", 2.0},
                        {"low_freq_factor", 4.0},
                        {"high_freq_factor", 4.0}},
                   {"rope_parameters.high_freq_factor", "low_freq_factor"}},
        ConfigCase{"partial",
                   "rope_parameters",
                   Json{{"rope_type", "default"}, {"partial_rotary_factor", 0.5}},
                   {"partial_rotary_factor is 0.5"}},
        ConfigCase{"quantized",
                   "quantization_config",
                   Json{{"quant_method", "bitsandbytes"}},
                   {"quantization_config.quant_method", "bitsandbytes", "unquantized"}}),
    [](const auto& info) { return info.param.name; });

TEST(Load, MissingFiles) {
  EXPECT_THAT(load_error("/nonexistent/model"), HasSubstr("/nonexistent/model/config.json"));
  ModelCopy copy("tied_linear");
  std::filesystem::remove(copy.path("model.safetensors"));
  EXPECT_THAT(load_error(copy.dir()), AllOf(HasSubstr(copy.dir()), HasSubstr("safetensors")));

  ModelCopy shards("untied_llama3");
  std::filesystem::remove(shards.path("model-00002-of-00003.safetensors"));
  EXPECT_THAT(load_error(shards.dir()), HasSubstr("model-00002-of-00003.safetensors is missing"));
}

TEST(Load, BrokenConfigNamesTheFile) {
  ModelCopy copy("tied_linear");
  test::write_bytes(copy.path("config.json"), "{\"vocab_size\": ");
  EXPECT_THAT(load_error(copy.dir()), HasSubstr(copy.path("config.json")));
  test::write_bytes(copy.path("config.json"), "[1, 2]");
  EXPECT_THAT(load_error(copy.dir()), HasSubstr(copy.path("config.json")));
}

// Cut at every kind of place: nothing, inside the size, inside the header, inside the data.
TEST(Load, TruncatedWeights) {
  ModelCopy copy("tied_linear");
  const std::string path = copy.path("model.safetensors");
  const std::string bytes = test::read_bytes(path);
  for (const size_t keep :
       {size_t{0}, size_t{5}, size_t{8}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    test::write_bytes(path, bytes.substr(0, keep));
    EXPECT_THAT(load_error(copy.dir()), HasSubstr(path)) << keep << " bytes";
  }
}

TEST(Load, HeaderThatLies) {
  const std::string name = "model.norm.weight";
  ModelCopy size("tied_linear");
  std::string bytes = test::read_bytes(size.path("model.safetensors"));
  bytes.replace(0, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
  test::write_bytes(size.path("model.safetensors"), bytes);
  EXPECT_THAT(load_error(size.dir()), HasSubstr("model.safetensors"));

  ModelCopy offsets("tied_linear");
  offsets.edit_weights("model.safetensors", [&](Json& header, std::string&) {
    header[name]["data_offsets"][1] = 1u << 30;
  });
  EXPECT_THAT(load_error(offsets.dir()), HasSubstr("model.safetensors"));

  ModelCopy shape("tied_linear");
  shape.edit_weights("model.safetensors",
                     [&](Json& header, std::string&) { header[name]["shape"] = {1000}; });
  EXPECT_THAT(load_error(shape.dir()), HasSubstr("model.safetensors"));
}

TEST(Load, TensorsThatDoNotFitTheConfig) {
  ModelCopy shape("tied_linear");
  shape.edit_config([](Json& config) { config["intermediate_size"] = 40; });
  EXPECT_THAT(load_error(shape.dir()), AllOf(HasSubstr("mlp.gate_proj.weight"),
                                             HasSubstr("F16 [36, 27]"), HasSubstr("[40, 27]")));

  ModelCopy more("tied_linear");
  more.edit_config([](Json& config) { config["num_hidden_layers"] = 4; });
  EXPECT_THAT(load_error(more.dir()), HasSubstr("model.layers.3.input_layernorm.weight"));

  ModelCopy fewer("tied_linear");
  fewer.edit_config([](Json& config) { config["num_hidden_layers"] = 2; });
  EXPECT_THAT(load_error(fewer.dir()), HasSubstr("model.layers.2."));

  ModelCopy bias("tied_linear");
  bias.edit_config([](Json& config) { config["attention_bias"] = false; });
  EXPECT_THAT(load_error(bias.dir()), HasSubstr("_proj.bias"));

  ModelCopy dtype("tied_linear");
  dtype.edit_weights("model.safetensors", [](Json& header, std::string&) {
    header["model.norm.weight"]["dtype"] = "I16";
  });
  EXPECT_THAT(load_error(dtype.dir()), AllOf(HasSubstr("model.norm.weight"), HasSubstr("I16")));
}

TEST(Load, ShardIndexThatLies) {
  ModelCopy moved("untied_llama3");
  const std::string index = "model.safetensors.index.json";
  moved.edit_json(index, [](Json& json) {
    json["weight_map"]["model.embed_tokens.weight"] = "model-00003-of-00003.safetensors";
  });
  EXPECT_THAT(load_error(moved.dir()),
              AllOf(HasSubstr("model.embed_tokens.weight"), HasSubstr("model-00003")));

  ModelCopy outside("untied_llama3");
  outside.edit_json(index, [](Json& json) {
    json["weight_map"]["model.embed_tokens.weight"] = "../../etc/passwd";
  });
  EXPECT_THAT(load_error(outside.dir()), HasSubstr("../../etc/passwd"));

  ModelCopy none("untied_llama3");
  test::write_bytes(none.path(index), "{}");
  EXPECT_THAT(load_error(none.dir()), HasSubstr("weight_map is missing"));
}

TEST(Load, WeightsThatAreNotFinite) {
  for (const std::string name : {"model.norm.weight", "model.embed_tokens.weight"}) {
    ModelCopy copy("tied_linear");
    copy.edit_weights("model.safetensors", [&](Json& header, std::string& data) {
      const size_t at = header[name]["data_offsets"][0].get<size_t>();
      data[at + 6] = 0x01;  // fp16 0x7e01: NaN
      data[at + 7] = 0x7e;
    });
    EXPECT_THAT(load_error(copy.dir()), AllOf(HasSubstr(name), HasSubstr("NaN")));
  }
}

TEST(Load, AcceptsStoredRotaryFrequencies) {
  ModelCopy copy("plain");
  copy.edit_weights("model.safetensors", [](Json& header, std::string& data) {
    header["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
        {"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {data.size(), data.size() + 4}}};
    data += std::string(4, '\0');
  });
  EXPECT_EQ(load_error(copy.dir()), "");
}

// Some checkpoints with tied embeddings store the head too: fine when it is the same.
TEST(Load, TiedHeadThatIsStored) {
  for (const bool equal : {true, false}) {
    ModelCopy copy("tied_linear");
    copy.edit_weights("model.safetensors", [&](Json& header, std::string& data) {
      const Json& table = header["model.embed_tokens.weight"];
      const size_t begin = table["data_offsets"][0].get<size_t>();
      const size_t bytes = table["data_offsets"][1].get<size_t>() - begin;
      Json head = table;
      head["data_offsets"] = {data.size(), data.size() + bytes};
      std::string values = data.substr(begin, bytes);
      if (!equal) values[0] ^= 1;
      header["lm_head.weight"] = head;
      data += values;
    });
    const std::string message = load_error(copy.dir());
    EXPECT_EQ(message.find("lm_head.weight") != std::string::npos, !equal) << message;
    EXPECT_EQ(message.empty(), equal);
  }
}

}  // namespace
}  // namespace kvsweep
