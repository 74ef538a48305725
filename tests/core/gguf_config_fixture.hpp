// A small GGUF model, and what config.json says of it: shared by the tests of its metadata.
#pragma once

#include "core/gguf_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {

// Six layers, hidden 32, 4 heads on 2, an embedding of 11 rows.
inline test::GgufWriter model_of(const std::string& name) {
  test::GgufWriter writer;
  writer.words("general.architecture", name)
      .number(name + ".block_count", 6)
      .number(name + ".context_length", 1024)
      .number(name + ".embedding_length", 32)
      .number(name + ".feed_forward_length", 48)
      .number(name + ".attention.head_count", 4)
      .number(name + ".attention.head_count_kv", 2)
      .real(name + ".attention.layer_norm_rms_epsilon", 1e-6f)
      .number("tokenizer.ggml.bos_token_id", 1)
      .number("tokenizer.ggml.eos_token_id", 2);
  writer.tensor("token_embd.weight", {11, 32}, std::vector<float>(11 * 32));
  return writer;
}

inline const Json kCommon = {{"hidden_size", 32},
                             {"intermediate_size", 48},
                             {"num_hidden_layers", 6},
                             {"num_attention_heads", 4},
                             {"num_key_value_heads", 2},
                             {"head_dim", 8},
                             {"max_position_embeddings", 1024},
                             {"rms_norm_eps", 1e-6},
                             {"vocab_size", 11},
                             {"tie_word_embeddings", true},
                             {"bos_token_id", 1},
                             {"eos_token_id", 2}};

class GgufConfig : public testing::Test {
 protected:
  Result<Json> config(const test::GgufWriter& writer) {
    path_ = dir_.write("model.gguf", writer.bytes());
    const auto file = GgufFile::open(path_);
    if (!file.ok()) return file.error();
    return gguf_config(*file);
  }
  void expect(const test::GgufWriter& writer, const Json& more) {
    const auto found = config(writer);
    ASSERT_TRUE(found.ok()) << found.error().message;
    Json expected = kCommon;
    expected.update(more);
    EXPECT_EQ(*found, expected) << Json::diff(expected, *found);
  }
  void expect_error(const test::GgufWriter& writer, const std::vector<std::string>& parts) {
    const auto found = config(writer);
    ASSERT_FALSE(found.ok()) << *found;
    EXPECT_EQ(found.error().code, ErrorCode::bad_input);
    EXPECT_THAT(found.error().message, testing::HasSubstr(path_));
    for (const std::string& part : parts)
      EXPECT_THAT(found.error().message, testing::HasSubstr(part));
  }

  test::TempDir dir_;
  std::string path_;
};

inline Json rope_of(double theta) {
  return {{"rope_type", "default"}, {"rope_theta", theta}};
}

inline Json llama(const Json& rope) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_act", "silu"},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"rope_parameters", rope}};
}

// Divisors as llama.cpp's converter computes them, in fp32, for heads of 64 with base 500000.
inline std::vector<float> llama3_divisors(float factor, float context) {
  std::vector<float> out;
  for (int i = 0; i < 32; ++i) {
    const float frequency = 1.0f / std::pow(500000.0f, static_cast<float>(2 * i) / 64.0f);
    const float wavelength = 2.0f * static_cast<float>(M_PI) / frequency;
    if (wavelength < context / 4.0f) {
      out.push_back(1.0f);
    } else if (wavelength > context) {
      out.push_back(factor);
    } else {
      const float smooth = (context / wavelength - 1.0f) / 3.0f;
      out.push_back(1.0f / ((1.0f - smooth) / factor + smooth));
    }
  }
  return out;
}

inline test::GgufWriter llama3_model(const std::vector<float>& divisors) {
  test::GgufWriter writer = model_of("llama");
  writer.number("llama.attention.key_length", 64)
      .number("llama.attention.value_length", 64)
      .real("llama.rope.freq_base", 500000.0f);
  writer.tensor("rope_freqs.weight", {32}, divisors);
  return writer;
}

}  // namespace kvsweep
