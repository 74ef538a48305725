// Key-bias factoring: the same scores from keys without their bias. References: transformers'
// logits of small random Qwen 2 models, and the same model under an fp32 cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "tests/worker/engine/family_models.hpp"
#include "tests/worker/engine/support.hpp"
#include "worker/codec/codec.hpp"

namespace kvsweep {
namespace {

using testing::HasSubstr;

std::unique_ptr<model::Model> load(const std::string& dir) {
  auto loaded = model::load_model(dir, {1});
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
  return std::move(loaded).value();
}

Scheme scheme_of(const SchemeOptions& options) {
  auto made = make_scheme(options);
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(made).value();
}

test::BatchSpec spec_of(const model::Model& model, const SchemeOptions& options, Pair pair) {
  test::BatchSpec spec;
  spec.map = uniform_map(scheme_of(options), model.geometry().num_layers(), pair);
  spec.base = BaseType::fp32;
  return spec;
}

// Multiplies the biases of all key projections in a folder's model.safetensors (F32).
void scale_key_biases(const std::string& dir, float factor) {
  const std::string path = dir + "/model.safetensors";
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  in.close();
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const Json tensors = Json::parse(bytes.substr(8, header));
  int scaled = 0;
  for (const auto& item : tensors.items()) {
    if (!item.key().ends_with("k_proj.bias")) continue;
    const auto range = item.value().at("data_offsets").get<std::vector<uint64_t>>();
    for (uint64_t at = range[0]; at < range[1]; at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 8 + header + at, sizeof(value));
      value *= factor;
      std::memcpy(bytes.data() + 8 + header + at, &value, sizeof(value));
    }
    ++scaled;
  }
  ASSERT_GT(scaled, 0);
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

double mean_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::fabs(double{a[i]} - double{b[i]});
  return sum / static_cast<double>(a.size());
}

// With a window as long as the prompt all keys stay exact, so factoring alone is seen: its logits
// must be transformers'. Sinks and sliding windows (qwen2-windows) and YaRN included.
TEST(KeyBiasFactoring, ExactTokensGiveTransformersLogits) {
  for (const char* variant : {"qwen2-windows", "qwen2-yarn", "smollm3-windows"}) {
    const test::FamilyModel files(variant);
    const auto model = load(files.dir());
    ASSERT_TRUE(model->has_key_bias()) << variant;
    for (const int sinks : {0, 3}) {
      SchemeOptions options{.residual = 128};
      options.sinks = sinks;
      options.key_bias = KeyBias::factored;
      const auto spec = spec_of(*model, options, {Codec::int4, Codec::int4});
      for (const Json& one : test::family_goldens().at(variant).at("cases")) {
        const auto tokens = one.at("tokens").get<std::vector<int32_t>>();
        const auto logits = test::batch_logits(*model, spec, {tokens});
        EXPECT_LE(test::golden_difference(one, logits[0], model->vocab_size()), 1e-3) << variant;
      }
    }
  }
}

// Decoded pages with and without rotation: 8 bits with groups of 32 lose little either way.
TEST(KeyBiasFactoring, CodedTokensKeepTheScores) {
  const test::FamilyModel files("qwen2-yarn");
  const auto model = load(files.dir());
  const auto tokens = test::random_tokens(100, model->vocab_size(), 3);
  const auto exact = test::batch_logits(*model, spec_of(*model, {}, Pair{}), {tokens});
  for (const char* name : {"per-token", "kivi"}) {
    for (const Hadamard hadamard : {Hadamard::none, Hadamard::both}) {
      SchemeOptions options{.name = name, .group = 32};
      options.hadamard = hadamard;
      options.key_bias = KeyBias::factored;
      const auto spec = spec_of(*model, options, {Codec::int8, Codec::int8});
      const auto logits = test::batch_logits(*model, spec, {tokens});
      EXPECT_LE(test::largest_difference(logits[0], exact[0]), 0.03f) << name;
    }
  }
}

// What it is for: a bias that dwarfs the rest of the key costs per-token codes their resolution.
// All key biases are 40 times what the model was made with; both maps code keys alone, in 4 bits.
TEST(KeyBiasFactoring, LargeBiasesCostNoResolution) {
  const test::FamilyModel files("qwen2-yarn");
  scale_key_biases(files.dir(), 40.0f);
  const auto model = load(files.dir());
  const auto tokens = test::random_tokens(100, model->vocab_size(), 4);
  const Pair keys{Codec::int4, Codec::base};
  const auto exact = test::batch_logits(*model, spec_of(*model, {}, Pair{}), {tokens})[0];
  SchemeOptions options;
  const auto coded = test::batch_logits(*model, spec_of(*model, options, keys), {tokens})[0];
  options.key_bias = KeyBias::factored;
  const auto factored = test::batch_logits(*model, spec_of(*model, options, keys), {tokens})[0];
  EXPECT_LT(mean_difference(factored, exact), 0.2 * mean_difference(coded, exact));
}

// How tokens arrive, and what runs beside them, changes no bit.
TEST(KeyBiasFactoring, ChunksAndBatchesChangeNothing) {
  const test::FamilyModel files("qwen2-windows");
  const auto model = load(files.dir());
  const auto first = test::random_tokens(100, model->vocab_size(), 5);
  const auto second = test::random_tokens(70, model->vocab_size(), 6);
  SchemeOptions options{.name = "kivi"};
  options.prefill = Prefill::stepwise;
  options.sinks = 2;
  options.key_bias = KeyBias::factored;
  auto spec = spec_of(*model, options, {Codec::int4, Codec::int4});
  const auto whole = test::batch_logits(*model, spec, {first});
  spec.chunk = 7;
  const auto chunked = test::batch_logits(*model, spec, {second, first});
  EXPECT_EQ(whole[0], chunked[1]);
}

TEST(KeyBiasFactoring, ModelsWithoutBiasRefuseByName) {
  auto engine = test::load_engine(test::reference_dir());
  SchemeOptions options;
  options.key_bias = KeyBias::factored;
  const PrecisionMap map =
      uniform_map(scheme_of(options), engine.geometry().num_layers(), {Codec::int4, Codec::int4});
  const auto logits = engine.logits(map, {1, 2, 3}, BaseType::fp16, 0);
  ASSERT_FALSE(logits.ok());
  EXPECT_THAT(logits.error().message, HasSubstr("key_bias: factored"));
}

std::vector<float> fp8_logits(engine::Engine& engine, const Ranges& ranges,
                              const std::vector<int32_t>& tokens) {
  SchemeOptions options{.name = "fp8"};
  options.ranges = ranges;
  const PrecisionMap map = uniform_map(scheme_of(options), engine.geometry().num_layers(),
                                       {Codec::fp8_e4m3, Codec::fp8_e4m3});
  auto logits = engine.logits(map, tokens, BaseType::fp32, 0);
  if (!logits.ok()) throw std::runtime_error(logits.error().message);
  return std::move(logits).value();
}

// What maps may say of a codec, and what its implementation can do.
TEST(Calibration, CatalogAndCodecsAgree) {
  for (const CodecInfo& entry : codecs()) {
    const codec::Codec* made = codec::find_codec(entry.name);
    if (made == nullptr) continue;  // the base type
    EXPECT_EQ(takes_constant(entry.codec), made->calibration != codec::Calibration::never);
    if (!takes_constant(entry.codec)) continue;
    const codec::Variant variant{.calibrated = true, .constant = 1.0f};
    EXPECT_EQ(bytes_beside_constant(entry.codec), made->param_bytes(variant)) << entry.name;
  }
}

// Ranges from a real pass: what they came from does not saturate, and much smaller ones do.
TEST(Calibration, RangesReachWhatWasSeen) {
  const test::FamilyModel files("qwen2-yarn");
  scale_key_biases(files.dir(), 40.0f);
  auto engine = test::load_engine(files.dir());
  const auto tokens = test::random_tokens(60, engine.vocab_size(), 7);
  const std::vector<engine::SequenceRequest> requests = {{tokens, {}, 1}};
  engine::RunOptions run{.base = BaseType::fp32};
  const auto before = engine.logits(baseline_map({}, 2), tokens, BaseType::fp32, 0);
  const auto observed = engine.observe_ranges(requests, run, nullptr);
  ASSERT_TRUE(observed.ok()) << observed.error().message;
  const auto again = engine.observe_ranges(requests, run, nullptr);
  EXPECT_EQ(*again, *observed);
  EXPECT_EQ(*engine.logits(baseline_map({}, 2), tokens, BaseType::fp32, 0), *before);
  ASSERT_EQ(observed->unbiased_keys.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    // An orthonormal matrix moves the largest magnitude by at most sqrt(head_dim) either way.
    EXPECT_LE(observed->rotated_keys[i], 8.001f * observed->keys[i]);
    EXPECT_GE(observed->rotated_keys[i], 0.124f * observed->keys[i]);
    EXPECT_LT(observed->unbiased_keys[i], 0.5f * observed->keys[i]);
  }
  Ranges ranges = *choose(*observed, {});
  const auto wide = fp8_logits(engine, ranges, tokens);
  for (float& range : ranges.values) range *= 0.1f;
  const auto narrow = fp8_logits(engine, ranges, tokens);
  EXPECT_LT(mean_difference(wide, *before), 0.2 * mean_difference(narrow, *before));
}

}  // namespace
}  // namespace kvsweep
