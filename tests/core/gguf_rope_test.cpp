// The rotary embedding of GGUF files in the spelling of config.json: partial rotation, scaling, and
// divisors that the files hold as a tensor.
#include "tests/core/gguf_config_fixture.hpp"

namespace kvsweep {
namespace {

using test::GgufWriter;
using GgufRope = GgufConfig;

// For every size of head and every number of channels that rotate, the factor gives the number
// back.
TEST_F(GgufRope, PartialRotation) {
  for (const int head : {64, 80, 96, 128}) {
    for (int channels = 2; channels < head; channels += 2) {
      GgufWriter writer = model_of("phi3");
      writer.number("phi3.attention.key_length", static_cast<uint32_t>(head))
          .number("phi3.attention.value_length", static_cast<uint32_t>(head))
          .number("phi3.rope.dimension_count", static_cast<uint32_t>(channels));
      const auto found = config(writer);
      ASSERT_TRUE(found.ok()) << found.error().message;
      const double part = found->at("rope_parameters").at("partial_rotary_factor").get<double>();
      EXPECT_EQ(static_cast<int>(head * part), channels) << head;
    }
  }
}

TEST_F(GgufRope, RopeScaling) {
  GgufWriter linear = model_of("llama");
  linear.real("llama.rope.scaling.factor", 2.5f);  // no type: linear
  expect(linear, llama({{"rope_type", "linear"}, {"rope_theta", 10000.0}, {"factor", 2.5}}));
  GgufWriter old = model_of("llama");
  old.real("llama.rope.scale_linear", 4.0f);
  expect(old, llama({{"rope_type", "linear"}, {"rope_theta", 10000.0}, {"factor", 4.0}}));
  GgufWriter none = model_of("llama");
  none.words("llama.rope.scaling.type", "none").real("llama.rope.scaling.factor", 2.0f);
  expect(none, llama(rope_of(10000.0)));
  GgufWriter yarn = model_of("llama");
  yarn.words("llama.rope.scaling.type", "yarn")
      .real("llama.rope.scaling.factor", 4.0f)
      .number("llama.rope.scaling.original_context_length", 256)
      .flag("llama.rope.scaling.finetuned", true);
  expect(yarn, llama({{"rope_type", "yarn"},
                      {"rope_theta", 10000.0},
                      {"factor", 4.0},
                      {"beta_fast", 32.0},
                      {"beta_slow", 1.0},
                      {"original_max_position_embeddings", 256}}));
}

TEST_F(GgufRope, Llama3DivisorsAreRecognised) {
  for (const float factor : {8.0f, 32.0f}) {
    Json expected = llama({{"rope_type", "llama3"},
                           {"rope_theta", 500000.0},
                           {"factor", factor},
                           {"low_freq_factor", 1.0},
                           {"high_freq_factor", 4.0},
                           {"original_max_position_embeddings", 8192}});
    expected["head_dim"] = 64;
    expect(llama3_model(llama3_divisors(factor, 8192.0f)), expected);
  }
}

TEST_F(GgufRope, OtherDivisorsAreLongrope) {
  const std::vector<float> divisors = llama3_divisors(8.0f, 4096.0f);
  const auto found = config(llama3_model(divisors));
  ASSERT_TRUE(found.ok()) << found.error().message;
  const Json& rope = found->at("rope_parameters");
  EXPECT_EQ(rope.at("rope_type"), "longrope");
  EXPECT_EQ(rope.at("attention_factor"), 1.0);
  EXPECT_EQ(rope.at("original_max_position_embeddings"), 1024);
  for (const char* list : {"short_factor", "long_factor"}) {
    EXPECT_EQ(rope.at(list).get<std::vector<float>>(), divisors);
  }
}

}  // namespace
}  // namespace kvsweep
