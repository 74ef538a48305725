// Families read from GGUF files that this test writes as llama.cpp's converters do (names from the
// `gguf` package, tests/worker/model/golden/gguf_names.json), against transformers' logits of the
// same weights, or, where GGUF cannot say what a variant has, against the same model as
// safetensors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include "tests/support/gguf_writer.hpp"
#include "tests/worker/engine/family_models.hpp"
#include "tests/worker/engine/support.hpp"

namespace kvsweep {
namespace {

using test::GgufWriter;

constexpr double kTolerance = 1e-3;

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using Tensors = std::map<std::string, Tensor>;

// Of a folder whose tensors are all F32.
Tensors read_safetensors(const std::string& dir) {
  std::ifstream file(dir + "/model.safetensors", std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  const std::string bytes = all.str();
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  const Json header = Json::parse(bytes.substr(8, size));
  Tensors out;
  for (const auto& [name, about] : header.items()) {
    const auto begin = about.at("data_offsets")[0].get<size_t>();
    const auto end = about.at("data_offsets")[1].get<size_t>();
    Tensor tensor{about.at("shape").get<std::vector<int64_t>>(), {}};
    tensor.values.resize((end - begin) / sizeof(float));
    std::memcpy(tensor.values.data(), bytes.data() + 8 + size + begin, end - begin);
    out.emplace(name, std::move(tensor));
  }
  return out;
}

// model.layers.3.x.weight: the golden has the names of layer 0, and biases are named as weights.
std::string gguf_name(const Json& names, const std::string& name) {
  std::string key = name, layer;
  const std::string prefix = "model.layers.";
  if (name.starts_with(prefix)) {
    const size_t end = name.find('.', prefix.size());
    layer = name.substr(prefix.size(), end - prefix.size());
    key = prefix + "0" + name.substr(end);
  }
  const bool bias = key.ends_with(".bias");
  if (bias) key = key.substr(0, key.size() - 5) + ".weight";
  std::string out = names.at(key).get<std::string>();
  if (!layer.empty()) out = "blk." + layer + out.substr(5);
  if (bias) out = out.substr(0, out.size() - 7) + ".bias";
  return out;
}

// llama.cpp's LlamaModel.permute: reshape(heads, 2, d / 2, ...), swap the middle two, flatten.
void interleave(Tensor& tensor, int64_t heads) {
  const int64_t rows = tensor.shape[0];
  const int64_t width = static_cast<int64_t>(tensor.values.size()) / rows;
  const int64_t half = rows / heads / 2;
  std::vector<float> out;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t j = 0; j < half; ++j) {
      for (int64_t h = 0; h < 2; ++h) {
        const float* row = tensor.values.data() + (head * 2 * half + h * half + j) * width;
        out.insert(out.end(), row, row + width);
      }
    }
  }
  tensor.values = out;
}

void convert(const std::string& arch, const Json& config, const std::string& name, Tensor& tensor) {
  const bool neighbours = arch == "llama" || arch == "smollm3";
  const bool query = name.find("q_proj.") != std::string::npos;
  const bool key = name.find("k_proj.") != std::string::npos;
  if (neighbours && query) interleave(tensor, config.at("num_attention_heads").get<int64_t>());
  if (neighbours && key) interleave(tensor, config.at("num_key_value_heads").get<int64_t>());
  if (arch.starts_with("gemma") && name.ends_with("norm.weight")) {
    for (float& value : tensor.values) value += 1.0f;
  }
}

int64_t head_dim_of(const Json& config) {
  return config.value("head_dim", config.at("hidden_size").get<int64_t>() /
                                      config.at("num_attention_heads").get<int64_t>());
}

GgufWriter metadata_of(const std::string& arch, const Json& config) {
  const auto size = [&](const char* field) { return config.at(field).get<uint32_t>(); };
  const auto head_dim = static_cast<uint32_t>(head_dim_of(config));
  GgufWriter writer;
  writer.words("general.architecture", arch)
      .number(arch + ".block_count", size("num_hidden_layers"))
      .number(arch + ".context_length", size("max_position_embeddings"))
      .number(arch + ".embedding_length", size("hidden_size"))
      .number(arch + ".feed_forward_length", size("intermediate_size"))
      .number(arch + ".attention.head_count", size("num_attention_heads"))
      .number(arch + ".attention.head_count_kv", size("num_key_value_heads"))
      .number(arch + ".attention.key_length", head_dim)
      .number(arch + ".attention.value_length", head_dim)
      .real(arch + ".attention.layer_norm_rms_epsilon", config.at("rms_norm_eps").get<float>());
  return writer;
}

struct Conversion {
  std::string variant;
  std::string arch;
  Json changes;  // of config.json, to what GGUF can say
  std::function<void(GgufWriter&)> more;
};

std::string convert(const test::FamilyModel& model, const Conversion& one) {
  const Json config = read_json_file(model.dir() + "/config.json").value();
  const Json names = test::read_golden("worker/model/golden/gguf_names.json").at(one.arch);
  GgufWriter writer = metadata_of(one.arch, config);
  one.more(writer);
  for (auto& [name, tensor] : read_safetensors(model.dir())) {
    convert(one.arch, config, name, tensor);
    writer.tensor(gguf_name(names, name), tensor.shape, tensor.values);
  }
  return writer.bytes();
}

// Dubey et al. 2024, as llama.cpp's converter writes it into rope_freqs.weight.
std::vector<float> llama3_divisors(int64_t channels, double theta, double factor, double context) {
  std::vector<float> out;
  for (int64_t i = 0; i < channels; i += 2) {
    const double wave = 2 * M_PI * std::pow(theta, static_cast<double>(i) / channels);
    const double smooth = (context / wave - 1.0) / 3.0;
    const double between = 1.0 / ((1.0 - smooth) / factor + smooth);
    out.push_back(static_cast<float>(wave < context / 4 ? 1.0 : wave > context ? factor : between));
  }
  return out;
}

std::vector<float> numbers(const Json& list) {
  return list.get<std::vector<float>>();
}

void yarn(GgufWriter& writer, const std::string& arch, uint32_t original) {
  writer.words(arch + ".rope.scaling.type", "yarn")
      .real(arch + ".rope.scaling.factor", 4.0f)
      .number(arch + ".rope.scaling.original_context_length", original);
}

// Variants whose configuration GGUF can say as it is.
std::vector<Conversion> faithful() {
  return {
      {"mistral-window",
       "llama",
       {},
       [](GgufWriter& w) { w.number("llama.attention.sliding_window", 9); }},
      {"mistral-null", "llama", {}, [](GgufWriter& w) { w.real("llama.rope.freq_base", 1e6f); }},
      {"llama-yarn",
       "llama",
       {},
       [](GgufWriter& w) {
         yarn(w, "llama", 32);
         w.real("llama.rope.scaling.yarn_beta_fast", 16.0f);
         w.real("llama.rope.scaling.yarn_beta_slow", 1.5f);
       }},
      {"qwen2-yarn",
       "qwen2",
       {},
       [](GgufWriter& w) {
         yarn(w, "qwen2", 24);
         w.real("qwen2.rope.freq_base", 5000.0f);
       }},
      {"qwen3", "qwen3", {}, [](GgufWriter& w) { w.real("qwen3.rope.freq_base", 1e6f); }},
      {"phi3-window",
       "phi3",
       {},
       [](GgufWriter& w) {
         w.number("phi3.attention.sliding_window", 13);
         w.number("phi3.rope.scaling.original_context_length", 128);
       }},
      {"phi3-longrope",
       "phi3",
       {},
       [](GgufWriter& w) {
         const Json config = test::family_goldens().at("phi3-longrope").at("config");
         const Json& rope = config.at("rope_scaling");
         w.number("phi3.rope.dimension_count", 48);
         w.number("phi3.rope.scaling.original_context_length", 32);
         w.real("phi3.rope.scaling.attn_factor",
                static_cast<float>(std::sqrt(1.0 + std::log(128.0 / 32.0) / std::log(32.0))));
         w.tensor("rope_factors_long.weight", {24}, numbers(rope.at("long_factor")));
         w.tensor("rope_factors_short.weight", {24}, numbers(rope.at("short_factor")));
       }},
      {"olmo2", "olmo2", {}, [](GgufWriter& w) { w.real("olmo2.rope.freq_base", 5e5f); }},
      {"olmo2-llama3",
       "olmo2",
       {},
       [](GgufWriter& w) {
         w.tensor("rope_freqs.weight", {32}, llama3_divisors(64, 10000.0, 8.0, 48.0));
       }},
  };
}

std::vector<Conversion> changed() {
  const Json removed = Json(Json::value_t::discarded);
  return {
      {"gemma2",
       "gemma2",
       {{"query_pre_attn_scalar", 256}},
       [](GgufWriter& w) {
         w.number("gemma2.attention.sliding_window", 8);
         w.real("gemma2.attn_logit_softcapping", 3.0f);
         w.real("gemma2.final_logit_softcapping", 6.0f);
       }},
      {"gemma3",
       "gemma3",
       {{"query_pre_attn_scalar", 256}},
       [](GgufWriter& w) {
         w.number("gemma3.attention.sliding_window", 6);
         w.number("gemma3.attention.sliding_window_pattern", 3);
         w.real("gemma3.rope.freq_base", 1e6f);
         w.real("gemma3.rope.freq_base_swa", 5000.0f);
         w.words("gemma3.rope.scaling.type", "linear");
         w.real("gemma3.rope.scaling.factor", 8.0f);
       }},
      {"smollm3",
       "smollm3",
       {{"no_rope_layers", removed}},
       [](GgufWriter& w) { w.real("smollm3.rope.freq_base", 5e6f); }},
      {"smollm3-windows",
       "smollm3",
       {{"no_rope_layer_interval", removed}, {"use_sliding_window", false}},
       [](GgufWriter& w) { w.real("smollm3.rope.freq_base", 2e6f); }},
      {"qwen2-windows",
       "qwen2",
       {{"use_sliding_window", false}},
       [](GgufWriter& w) { w.real("qwen2.rope.freq_base", 1e6f); }},
  };
}

std::vector<std::vector<float>> logits_of(const std::string& path, const Json& cases) {
  auto loaded = model::load_model(path, {1});
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
  const auto model = std::move(loaded).value();
  test::BatchSpec spec;
  spec.map = test::make_map("baseline", model->geometry().num_layers());
  spec.base = BaseType::fp32;
  std::vector<std::vector<int32_t>> prompts;
  for (const Json& one : cases) prompts.push_back(one.at("tokens").get<std::vector<int32_t>>());
  return test::batch_logits(*model, spec, prompts);
}

TEST(GgufFamilies, EqualTransformers) {
  const test::TempDir dir;
  for (const Conversion& one : faithful()) {
    SCOPED_TRACE(one.variant);
    const test::FamilyModel model(one.variant);
    const std::string path = dir.write(one.variant + ".gguf", convert(model, one));
    const Json& golden = test::family_goldens().at(one.variant);
    const auto logits = logits_of(path, golden.at("cases"));
    const int64_t vocab = golden.at("config").at("vocab_size").get<int64_t>();
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_LE(test::golden_difference(golden.at("cases")[i], logits[i], vocab), kTolerance);
    }
  }
}

TEST(GgufFamilies, EqualSafetensors) {
  const test::TempDir dir;
  for (const Conversion& one : changed()) {
    SCOPED_TRACE(one.variant);
    const test::FamilyModel model(one.variant);
    model.configure(one.changes);
    const std::string path = dir.write(one.variant + ".gguf", convert(model, one));
    const Json& cases = test::family_goldens().at(one.variant).at("cases");
    const auto expected = logits_of(model.dir(), cases);
    const auto found = logits_of(path, cases);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_LE(test::largest_difference(found[i], expected[i]), 1e-4f);
    }
  }
}

// Without its conversion undone, a model would still load and compute something else.
TEST(GgufFamilies, ConversionsMatter) {
  const test::TempDir dir;
  Conversion one = faithful()[1];
  const test::FamilyModel model(one.variant);
  GgufWriter writer = metadata_of("llama", read_json_file(model.dir() + "/config.json").value());
  one.more(writer);
  const Json names = test::read_golden("worker/model/golden/gguf_names.json").at("llama");
  for (const auto& [name, tensor] : read_safetensors(model.dir())) {
    writer.tensor(gguf_name(names, name), tensor.shape, tensor.values);
  }
  const Json& golden = test::family_goldens().at(one.variant);
  const auto logits = logits_of(dir.write("raw.gguf", writer.bytes()), golden.at("cases"));
  EXPECT_GT(test::golden_difference(golden.at("cases")[1], logits[1], 41), 0.1);
}

}  // namespace
}  // namespace kvsweep
