// What metadata of GGUF files mean, in the spelling of config.json. The expected values of each
// architecture are what its published config.json says for such a model (facts of llama.cpp's
// converters and of transformers' configuration classes).
#include <functional>

#include "core/geometry.hpp"
#include "core/hash.hpp"
#include "tests/core/gguf_config_fixture.hpp"

namespace kvsweep {
namespace {

using test::GgufWriter;
using testing::HasSubstr;

TEST_F(GgufConfig, Llama) {
  GgufWriter writer = model_of("llama");
  writer.number("llama.vocab_size", 11)
      .number("llama.rope.dimension_count", 8)
      .real("llama.rope.freq_base", 100000.0f)
      .number("tokenizer.ggml.padding_token_id", 2);
  Json expected = llama(rope_of(100000.0));
  expected["pad_token_id"] = 2;
  expect(writer, expected);
}

TEST_F(GgufConfig, LlamaWithBiasesAndAHead) {
  GgufWriter writer = model_of("llama");
  writer.tensor("output.weight", {11, 32}, std::vector<float>(11 * 32));
  writer.tensor("blk.0.attn_q.bias", {32}, std::vector<float>(32));
  writer.tensor("blk.0.ffn_gate.bias", {48}, std::vector<float>(48));
  Json expected = llama(rope_of(10000.0));
  expected["tie_word_embeddings"] = false;
  expected["attention_bias"] = true;
  expected["mlp_bias"] = true;
  expect(writer, expected);
}

TEST_F(GgufConfig, LlamaWithAWindowIsMistral) {
  GgufWriter writer = model_of("llama");
  writer.number("llama.attention.sliding_window", 256).number("llama.attention.key_length", 16);
  writer.number("llama.attention.value_length", 16);
  expect(writer, {{"architectures", {"MistralForCausalLM"}},
                  {"model_type", "mistral"},
                  {"hidden_act", "silu"},
                  {"head_dim", 16},
                  {"sliding_window", 256},
                  {"rope_parameters", rope_of(10000.0)}});
}

TEST_F(GgufConfig, Qwen) {
  GgufWriter two = model_of("qwen2");
  two.real("qwen2.rope.freq_base", 1e6f);
  expect(two, {{"architectures", {"Qwen2ForCausalLM"}},
               {"model_type", "qwen2"},
               {"hidden_act", "silu"},
               {"use_sliding_window", false},
               {"rope_parameters", rope_of(1e6)}});
  GgufWriter three = model_of("qwen3");
  three.number("qwen3.attention.key_length", 16).number("qwen3.attention.value_length", 16);
  expect(three, {{"architectures", {"Qwen3ForCausalLM"}},
                 {"model_type", "qwen3"},
                 {"hidden_act", "silu"},
                 {"head_dim", 16},
                 {"attention_bias", false},
                 {"use_sliding_window", false},
                 {"rope_parameters", rope_of(10000.0)}});
}

TEST_F(GgufConfig, Phi3) {
  GgufWriter writer = model_of("phi3");
  writer.number("phi3.rope.scaling.original_context_length", 512)
      .number("phi3.rope.dimension_count", 6)
      .number("phi3.attention.sliding_window", 0)
      .real("phi3.rope.scaling.attn_factor", 1.25f);
  writer.tensor("rope_factors_long.weight", {3}, {1.0f, 4.0f, 16.0f});
  writer.tensor("rope_factors_short.weight", {3}, {1.0f, 1.5f, 2.0f});
  expect(writer, {{"architectures", {"Phi3ForCausalLM"}},
                  {"model_type", "phi3"},
                  {"hidden_act", "silu"},
                  {"sliding_window", nullptr},
                  {"original_max_position_embeddings", 512},
                  {"rope_parameters",
                   {{"rope_type", "longrope"},
                    {"rope_theta", 10000.0},
                    {"partial_rotary_factor", 0.75},
                    {"short_factor", {1.0, 1.5, 2.0}},
                    {"long_factor", {1.0, 4.0, 16.0}},
                    {"attention_factor", 1.25},
                    {"original_max_position_embeddings", 512}}}});

  GgufWriter small = model_of("phi3");
  small.number("phi3.attention.sliding_window", 2047);
  small.number("phi3.rope.scaling.original_context_length", 1024);
  expect(small, {{"architectures", {"Phi3ForCausalLM"}},
                 {"model_type", "phi3"},
                 {"hidden_act", "silu"},
                 {"sliding_window", 2047},
                 {"rope_parameters", rope_of(10000.0)}});
}

TEST_F(GgufConfig, Gemma2) {
  GgufWriter writer = model_of("gemma2");
  writer.number("gemma2.attention.key_length", 16)
      .number("gemma2.attention.value_length", 16)
      .number("gemma2.attention.sliding_window", 64)
      .real("gemma2.attn_logit_softcapping", 50.0f)
      .real("gemma2.final_logit_softcapping", 30.0f);
  const std::string s = "sliding_attention", f = "full_attention";
  expect(writer, {{"architectures", {"Gemma2ForCausalLM"}},
                  {"model_type", "gemma2"},
                  {"hidden_activation", "gelu_pytorch_tanh"},
                  {"head_dim", 16},
                  {"query_pre_attn_scalar", 16},
                  {"attn_logit_softcapping", 50.0},
                  {"final_logit_softcapping", 30.0},
                  {"sliding_window", 64},
                  {"layer_types", {s, f, s, f, s, f}},
                  {"rope_parameters", rope_of(10000.0)}});
}

TEST_F(GgufConfig, Gemma3) {
  GgufWriter writer = model_of("gemma3");
  writer.number("gemma3.attention.key_length", 8)
      .number("gemma3.attention.value_length", 8)
      .number("gemma3.attention.sliding_window", 64)
      .words("gemma3.rope.scaling.type", "linear")
      .real("gemma3.rope.scaling.factor", 8.0f);
  const std::string s = "sliding_attention", f = "full_attention";
  expect(
      writer,
      {{"architectures", {"Gemma3ForCausalLM"}},
       {"model_type", "gemma3_text"},
       {"hidden_activation", "gelu_pytorch_tanh"},
       {"query_pre_attn_scalar", 8},
       {"sliding_window", 64},
       {"layer_types", {s, s, s, s, s, f}},
       {"rope_parameters",
        {{"full_attention", {{"rope_type", "linear"}, {"rope_theta", 1000000.0}, {"factor", 8.0}}},
         {"sliding_attention", rope_of(10000.0)}}}});
}

// Gemma 2 and 3 of 27 B scale queries by hidden / heads, which llama.cpp knows by their layers.
TEST_F(GgufConfig, LargeGemmas) {
  for (const auto& [name, layers] : {std::pair{"gemma2", 46u}, std::pair{"gemma3", 62u}}) {
    GgufWriter writer;
    const std::string prefix = name;
    writer.words("general.architecture", prefix)
        .number(prefix + ".block_count", layers)
        .number(prefix + ".context_length", 1024)
        .number(prefix + ".embedding_length", 96)
        .number(prefix + ".feed_forward_length", 48)
        .number(prefix + ".attention.head_count", 4)
        .number(prefix + ".attention.key_length", 16)
        .number(prefix + ".attention.value_length", 16)
        .real(prefix + ".attention.layer_norm_rms_epsilon", 1e-6f);
    writer.tensor("token_embd.weight", {2, 96}, std::vector<float>(192));
    const auto found = config(writer);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found->at("query_pre_attn_scalar"), 24);
  }
}

TEST_F(GgufConfig, SmolLm3AndOlmo2) {
  expect(model_of("smollm3"), {{"architectures", {"SmolLM3ForCausalLM"}},
                               {"model_type", "smollm3"},
                               {"hidden_act", "silu"},
                               {"attention_bias", false},
                               {"mlp_bias", false},
                               {"use_sliding_window", false},
                               {"no_rope_layers", {1, 1, 1, 0, 1, 1}},
                               {"rope_parameters", rope_of(10000.0)}});
  expect(model_of("olmo2"), {{"architectures", {"Olmo2ForCausalLM"}},
                             {"model_type", "olmo2"},
                             {"hidden_act", "silu"},
                             {"attention_bias", false},
                             {"rope_parameters", rope_of(10000.0)}});
}

TEST_F(GgufConfig, RefusedByName) {
  expect_error(model_of("mamba"), {"general.architecture is \"mamba\"", "llama", "olmo2"});
  GgufWriter adapter = model_of("llama");
  expect_error(adapter.words("general.type", "adapter"), {"general.type is \"adapter\""});
  GgufWriter experts = model_of("llama");
  expect_error(experts.number("llama.expert_count", 8), {"llama.expert_count is 8", "mixture"});
  GgufWriter odd = model_of("llama");
  expect_error(odd.real("llama.attention.scale", 0.5f), {"llama.attention.scale", "not known"});
  GgufWriter three = model_of("olmo2");
  expect_error(three.number("olmo2.attention.sliding_window", 64), {"OLMo 3"});
  GgufWriter latent = model_of("llama");
  expect_error(latent.number("llama.attention.value_length", 4),
               {"llama.attention.value_length is 4", "8"});
  GgufWriter part = model_of("llama");
  expect_error(part.number("llama.rope.dimension_count", 4), {"llama.rope.dimension_count is 4"});
  GgufWriter rope = model_of("llama");
  expect_error(rope.words("llama.rope.scaling.type", "su"), {"llama.rope.scaling.type is \"su\""});
  GgufWriter attention = model_of("llama");
  attention.words("llama.rope.scaling.type", "yarn").real("llama.rope.scaling.factor", 4.0f);
  expect_error(attention.real("llama.rope.scaling.attn_factor", 1.5f), {"attn_factor is 1.5"});
  GgufWriter base = model_of("llama");
  expect_error(base.real("llama.rope.freq_base", -1.0f), {"llama.rope.freq_base is -1"});
  GgufWriter both = llama3_model(llama3_divisors(8.0f, 8192.0f));
  expect_error(both.real("llama.rope.scaling.factor", 2.0f), {"rope_freqs.weight"});
  std::vector<float> zero(32, 1.0f);
  zero[5] = 0;
  expect_error(llama3_model(zero), {"rope_freqs.weight", "0"});
  expect_error(llama3_model(std::vector<float>(16, 1.0f)).tensor("x", {1}, {0.0f}), {});
}

TEST_F(GgufConfig, WhatIsMissingHasAName) {
  GgufWriter empty;
  expect_error(empty, {"general.architecture is missing"});
  GgufWriter bare;
  bare.words("general.architecture", "llama");
  expect_error(bare, {"llama.embedding_length is missing"});
  GgufWriter lists;
  lists.words("general.architecture", "llama")
      .number("llama.embedding_length", 32)
      .list<uint32_t>("llama.feed_forward_length", 4, {48, 48});
  expect_error(lists, {"llama.feed_forward_length is a list of u32"});
  GgufWriter zero;
  zero.words("general.architecture", "llama").number("llama.embedding_length", 0);
  expect_error(zero, {"llama.embedding_length is 0", "1 to"});
}

// The coordinator's view: geometry, check and identity of a file instead of a folder.
TEST_F(GgufConfig, GeometryAndHash) {
  GgufWriter writer = model_of("llama");
  const std::string path = dir_.write("a.gguf", writer.bytes());
  const auto geometry = read_geometry(path);
  ASSERT_TRUE(geometry.ok()) << geometry.error().message;
  EXPECT_EQ(geometry->family, "llama");
  EXPECT_EQ(geometry->max_context, 1024);
  EXPECT_EQ(geometry->layers, std::vector<LayerGeometry>(6, LayerGeometry{2, 8}));
  EXPECT_TRUE(check_model_folder(path).ok());
  EXPECT_EQ(*model_hash(path), sha256_hex(writer.bytes()));
  EXPECT_EQ(*model_hash(dir_.write("moved", writer.bytes())), *model_hash(path));

  const auto absent = check_model_folder(dir_.file("absent.gguf"));
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.error().message, HasSubstr("absent.gguf"));
  const std::string cut = dir_.write("cut.gguf", writer.bytes().substr(0, 700));
  EXPECT_THAT(check_model_folder(cut).error().message, HasSubstr(cut));
}

}  // namespace
}  // namespace kvsweep
