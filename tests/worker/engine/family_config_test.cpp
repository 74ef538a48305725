// What load_model says about configurations that lie, contradict themselves or describe what is not
// supported, for every family: always bad_input, naming file and field, never a wrong model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "core/rng.hpp"
#include "tests/worker/engine/family_models.hpp"
#include "worker/model/model.hpp"

namespace kvsweep {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// "" when it loads.
std::string load_error(const std::string& dir) {
  const auto model = model::load_model(dir, {});
  if (model.ok()) return "";
  EXPECT_EQ(model.error().code, ErrorCode::bad_input) << model.error().message;
  return model.error().message;
}

// One folder for each variant, whose config.json is written anew.
const test::FamilyModel& configured(const std::string& variant, const Json& changes) {
  static std::map<std::string, std::unique_ptr<test::FamilyModel>> folders;
  std::unique_ptr<test::FamilyModel>& folder = folders[variant];
  if (!folder) folder = std::make_unique<test::FamilyModel>(variant);
  folder->configure(changes);
  return *folder;
}

std::string error_with(const std::string& variant, const Json& changes) {
  return load_error(configured(variant, changes).dir());
}

const Json kSizes[] = {0, -3, 1000000000, 9223372036854775807, 2.5, "64", Json::array({64}), true};

// Sizes that no family takes. Where a number is a possible size, the weights contradict it.
TEST(HostileConfig, SizesInEveryFamily) {
  for (const std::string& variant : test::family_variants()) {
    for (const char* field :
         {"head_dim", "num_hidden_layers", "hidden_size", "intermediate_size",
          "num_attention_heads", "num_key_value_heads", "vocab_size", "max_position_embeddings"}) {
      for (const Json& value : kSizes) {
        if (field == std::string("max_position_embeddings") && value == 1000000000) continue;
        const std::string message = error_with(variant, {{field, value}});
        EXPECT_THAT(message, HasSubstr(std::string("config.json: ") + field + " is "))
            << variant << " " << value;
      }
    }
  }
}

// Nothing is allocated that the files cannot fill.
TEST(HostileConfig, SizesThatTheFilesContradict) {
  const std::pair<const char*, int> sizes[] = {{"intermediate_size", 1 << 20},
                                               {"vocab_size", 1 << 24},
                                               {"num_hidden_layers", 4096},
                                               {"hidden_size", 1 << 20}};
  for (const std::string& variant : test::family_variants()) {
    for (const auto& [field, value] : sizes) {
      EXPECT_THAT(error_with(variant, {{field, value}}),
                  AnyOf(HasSubstr("config.json calls for"), HasSubstr("layer"), HasSubstr(field)))
          << variant << " " << field;
    }
  }
}

TEST(HostileConfig, WhatNoFamilySupports) {
  const std::pair<const char*, Json> cases[] = {
      {"rms_norm_eps", 0},
      {"rms_norm_eps", "1e-5"},
      {"tie_word_embeddings", "yes"},
      {"is_causal", false},
      {"use_bidirectional_attention", true},
      {"rope_theta", -1},
      {"rope_theta", "10000"},
      {"quantization_config", {{"quant_method", "fp8"}}},
      {"quantization_config", {{"quant_method", "compressed-tensors"}}},
      {"quantization_config", Json::array({1})},
      {"quantization_config", {{"bits", 4}}},
      {"hidden_act", "relu2"},
      {"hidden_activation", "gelu"},
  };
  for (const std::string& variant : test::family_variants()) {
    const bool gemma = variant.rfind("gemma", 0) == 0;
    for (const auto& [field, value] : cases) {
      const std::string other = gemma ? "hidden_act" : "hidden_activation";
      if (field == other) continue;  // of the other families
      const std::string message = error_with(variant, {{field, value}});
      EXPECT_THAT(message, HasSubstr(std::string("config.json: ") + field)) << variant;
    }
  }
}

TEST(HostileConfig, ArchitecturesAreRefusedByName) {
  for (const char* name : {"MixtralForCausalLM", "Qwen3MoeForCausalLM", "DeepseekV3ForCausalLM",
                           "Gemma3ForConditionalGeneration", "GptOssForCausalLM"}) {
    EXPECT_THAT(error_with("qwen3", {{"architectures", {name}}}), HasSubstr(name));
  }
}

struct Case {
  std::string variant;
  Json changes;
  std::string part;  // of the message
};

Json longrope(Json changes) {
  Json rope = test::family_goldens().at("phi3-longrope").at("config").at("rope_scaling");
  rope.update(changes);
  return {{"rope_scaling", rope}};
}

Json yarn(Json changes) {
  Json rope = test::family_goldens().at("llama-yarn").at("config").at("rope_parameters");
  rope.update(changes);
  return {{"rope_parameters", rope}};
}

Json kinds(Json full) {
  return {{"rope_parameters", {{"full_attention", full}}}};
}

const std::vector<std::string> kFour = {"full_attention", "full_attention", "full_attention",
                                        "sliding_attention"};

std::vector<Case> cases() {
  const Json dynamic = {{"type", "dynamic"}};
  return {
      {"qwen2-windows", {{"layer_types", {"full_attention"}}}, "layer_types has 1 entries"},
      {"qwen2-windows", {{"layer_types", {"full_attention", "a", "b", "c"}}}, "layer_types holds"},
      {"qwen2-windows", {{"layer_types", {1, 2, 3, 4}}}, "layer_types is [1,2,3,4]"},
      {"qwen2-windows", {{"layer_types", "full_attention"}}, "layer_types is"},
      {"qwen2-windows", {{"layer_types", kFour}, {"use_sliding_window", false}}, "layer_types"},
      {"qwen2-windows", {{"max_window_layers", -1}}, "max_window_layers is -1"},
      {"qwen2-windows", {{"use_sliding_window", "no"}}, "use_sliding_window is"},
      {"qwen2-windows", {{"sliding_window", 0}}, "sliding_window is 0"},
      {"qwen2-yarn", {{"rope_parameters", {{"rope_type", "default"}}}}, "both present and differ"},
      {"qwen3", kinds({{"rope_type", "default"}}), "rope_parameters.full_attention is present"},
      {"qwen3-types", {{"sliding_window", nullptr}}, "sliding_window is not set"},
      {"mistral-window", {{"sliding_window", "9"}}, "sliding_window is \"9\""},
      {"mistral-window", {{"sliding_window", -9}}, "sliding_window is -9"},
      {"mistral-window", {{"layer_types", kFour}}, "layer_types is present"},
      {"llama-dynamic", {{"rope_scaling", dynamic}}, "rope_scaling.factor is missing"},
      {"llama-dynamic", {{"rope_scaling", 3}}, "rope_scaling is 3"},
      {"llama-dynamic", {{"rope_scaling", {{"type", 3}}}}, "rope_scaling.type is 3"},
      {"llama-yarn", yarn({{"factor", nullptr}}), "factor is missing"},
      {"llama-yarn", yarn({{"factor", 0}}), "factor is 0"},
      {"llama-yarn", yarn({{"beta_fast", -1}}), "beta_fast is -1"},
      {"llama-yarn", yarn({{"truncate", 1}}), "truncate is 1"},
      {"llama-yarn", yarn({{"rope_theta", 1}}), "rope_theta is 1"},
      {"llama-yarn", yarn({{"original_max_position_embeddings", 0}}), "original_max_position"},
      {"llama-yarn", yarn({{"partial_rotary_factor", 0.5}}), "partial_rotary_factor is 0.5"},
      {"llama-yarn", yarn({{"rope_type", "proportional"}}), "\"proportional\""},
      {"phi3-longrope", longrope({{"short_factor", {1, 2}}}), "short_factor has 2 values"},
      {"phi3-longrope", longrope({{"long_factor", nullptr}}), "long_factor is missing"},
      {"phi3-longrope", longrope({{"long_factor", {1, "2"}}}), "long_factor is"},
      {"phi3-longrope", longrope({{"type", "linear"}}), "\"linear\""},
      {"phi3-longrope", longrope({{"attention_factor", -1}}), "attention_factor is -1"},
      {"phi3-longrope", {{"partial_rotary_factor", 0.1}}, "short_factor has 24 values"},
      {"phi3-longrope", {{"partial_rotary_factor", 0.05}}, "partial_rotary_factor is 0.05"},
      {"phi3-longrope", {{"partial_rotary_factor", 1.5}}, "partial_rotary_factor is 1.5"},
      {"phi3-longrope", {{"original_max_position_embeddings", 1}}, "longrope needs at least 2"},
      {"gemma2", {{"attn_logit_softcapping", 0}}, "attn_logit_softcapping is 0"},
      {"gemma2", {{"final_logit_softcapping", "30"}}, "final_logit_softcapping is"},
      {"gemma2", {{"query_pre_attn_scalar", 0}}, "query_pre_attn_scalar is 0"},
      {"gemma2", {{"sliding_window", nullptr}}, "sliding_window is not set"},
      {"gemma3", {{"attn_logit_softcapping", 50.0}}, "attn_logit_softcapping is set"},
      {"gemma3", {{"sliding_window_pattern", 0}}, "sliding_window_pattern is 0"},
      {"gemma3", {{"rope_local_base_freq", 0}}, "rope_local_base_freq is 0"},
      {"gemma3", {{"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}}, "\"dynamic\""},
      {"gemma3-types", {{"rope_parameters", {{"rope_type", "default"}}}}, "neither full_attention"},
      {"gemma3-types", kinds({{"rope_type", "x"}}), "full_attention.rope_type is \"x\""},
      {"gemma3-types", kinds(7), "full_attention is 7"},
      {"gemma3-types", {{"rope_scaling", {{"type", "linear"}}}}, "both present"},
      {"smollm3", {{"no_rope_layers", {1, 0}}}, "no_rope_layers has 2 entries"},
      {"smollm3", {{"no_rope_layers", {1, 0, 1, 2}}}, "no_rope_layers is"},
      {"smollm3", {{"no_rope_layers", "none"}}, "no_rope_layers is"},
      {"smollm3-windows", {{"no_rope_layer_interval", 0}}, "no_rope_layer_interval is 0"},
      {"smollm3-windows",
       {{"use_sliding_window", false}, {"layer_types", kFour}},
       "sliding_window is not set"},
      {"olmo2", {{"attention_bias", 1}}, "attention_bias is 1"},
      {"olmo2", {{"attention_bias", true}}, "q_proj.bias"},
  };
}

TEST(HostileConfig, FieldsOfFamilies) {
  for (const Case& one : cases()) {
    EXPECT_THAT(error_with(one.variant, one.changes), HasSubstr(one.part))
        << one.variant << " " << one.changes;
  }
}

// Any value in any field: a model or bad_input, nothing else.
TEST(HostileConfig, RandomValues) {
  Rng rng(11, "hostile");
  for (const std::string& variant : test::family_variants()) {
    const Json& config = test::family_goldens().at(variant).at("config");
    for (int round = 0; round < 12; ++round) {
      auto field = config.begin();
      std::advance(field, static_cast<int64_t>(rng.below(config.size())));
      auto donor = config.begin();  // a value of another field, which is well-formed somewhere
      std::advance(donor, static_cast<int64_t>(rng.below(config.size())));
      Json value = *donor;
      if (round % 3 == 1) value = Json::array({*donor, *field});
      if (round % 3 == 2) value = rng.uniform() * 1e3 - 500;
      error_with(variant, {{field.key(), value}});
    }
  }
}

// Remembers what every layer asks of attention.
class Recorder final : public model::AttentionSink, public model::LogitSink {
 public:
  Status attend(const model::AttentionCall& call) override {
    calls.push_back(call);
    std::fill_n(call.out, call.rows * call.heads * call.head_dim, 0.0f);
    return {};
  }
  Status logits(int64_t, int64_t, const float*) override { return {}; }
  std::vector<model::AttentionCall> calls;
};

std::vector<model::AttentionCall> calls_of(const std::string& variant, const Json& changes) {
  auto model = model::load_model(configured(variant, changes).dir(), {});
  EXPECT_TRUE(model.ok()) << model.error().message;
  model::Batch batch;
  batch.tokens = {5};
  batch.positions = {0};
  batch.lengths = {1};
  Recorder recorder;
  EXPECT_TRUE((*model)->forward(batch, recorder, recorder).ok());
  return recorder.calls;
}

std::vector<int64_t> windows_of(const std::string& variant, const Json& changes = Json::object()) {
  std::vector<int64_t> windows;
  for (const model::AttentionCall& call : calls_of(variant, changes)) {
    windows.push_back(call.window);
  }
  return windows;
}

const Json kRemoved = Json(Json::value_t::discarded);

TEST(AttentionOfFamilies, Windows) {
  using Windows = std::vector<int64_t>;
  EXPECT_EQ(windows_of("llama-yarn"), (Windows{0, 0, 0}));
  EXPECT_EQ(windows_of("mistral-window"), (Windows{9, 9, 9}));
  EXPECT_EQ(windows_of("mistral-null"), (Windows{0, 0}));
  EXPECT_EQ(windows_of("qwen2-windows"), (Windows{0, 0, 7, 7}));
  EXPECT_EQ(windows_of("qwen3-types"), (Windows{11, 0, 11}));
  EXPECT_EQ(windows_of("phi3-window"), (Windows{13, 13}));
  EXPECT_EQ(windows_of("gemma2"), (Windows{8, 0, 8, 0}));
  EXPECT_EQ(windows_of("gemma3"), (Windows{6, 6, 0, 6, 6}));
  EXPECT_EQ(windows_of("smollm3-windows"), (Windows{0, 10, 0, 10}));
  // Absent is not null, and a window of the whole context is none.
  EXPECT_EQ(windows_of("mistral-window",
                       {{"sliding_window", kRemoved}, {"max_position_embeddings", 8192}}),
            (Windows{4096, 4096, 4096}));
  EXPECT_EQ(windows_of("mistral-window", {{"sliding_window", 128}}), (Windows{0, 0, 0}));
  EXPECT_EQ(windows_of("gemma3", {{"sliding_window_pattern", kRemoved}}), (Windows{6, 6, 6, 6, 6}));
}

TEST(AttentionOfFamilies, ScalesAndCaps) {
  const auto gemma = calls_of("gemma2", Json::object());
  EXPECT_EQ(gemma[0].softcap, 3.0f);
  EXPECT_FLOAT_EQ(gemma[0].scale, 1.0f / 12);  // of 144, not of 256 channels
  const auto absent = calls_of(
      "gemma2", {{"attn_logit_softcapping", kRemoved}, {"query_pre_attn_scalar", kRemoved}});
  EXPECT_EQ(absent[0].softcap, 50.0f);
  EXPECT_EQ(absent[0].scale, 1.0f / 16);
  const auto llama = calls_of("llama-dynamic", Json::object());
  EXPECT_EQ(llama[0].softcap, 0.0f);
  EXPECT_EQ(llama[0].scale, 0.125f);
}

// What must not be refused: other ways to say the same.
TEST(HostileConfig, HarmlessFields) {
  EXPECT_EQ(error_with("qwen3", {{"attention_dropout", 0.1}, {"layer_types", nullptr}}), "");
  EXPECT_EQ(error_with("qwen2-windows", {{"sliding_window", nullptr}}), "");
  EXPECT_EQ(error_with("gemma2", {{"hidden_act", "gelu"}, {"use_cache", true}}), "");
  EXPECT_EQ(error_with("mistral-null", {{"rope_scaling", nullptr}}), "");
  const Json& rope = test::family_goldens().at("qwen2-yarn").at("config").at("rope_scaling");
  EXPECT_EQ(error_with("qwen2-yarn", {{"rope_parameters", rope}}), "");
}

}  // namespace
}  // namespace kvsweep
