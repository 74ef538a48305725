// Key-bias factoring: the same scores from keys without their bias. References: transformers'
// logits of small random Qwen 2 models, and the same model under an fp32 cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "tests/worker/engine/family_models.hpp"
#include "tests/worker/engine/support.hpp"
#include "worker/cache/kv_cache.hpp"
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

// One layer with one KV head of 64, straight at the cache: keys are k + RoPE(b, p) with k of
// deviation 1 and a bias of deviation 20; queries small enough for soft weights.
struct Attention {
  static constexpr int kDim = 64;
  static constexpr int kTokens = 150;
  std::vector<float> keys, values, queries, bias;
  std::vector<std::vector<float>> angles;
  std::vector<const float*> rows;

  Attention() {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& out, int count, float scale) {
      for (int i = 0; i < count; ++i) out.push_back(scale * normal(random));
    };
    fill(keys, kTokens * kDim, 1);
    fill(values, kTokens * kDim, 1);
    fill(queries, kTokens * kDim, 0.3f);
    fill(bias, kDim, 20);
    for (int p = 0; p < kTokens; ++p) {
      angles.emplace_back();
      for (int i = 0; i < kDim / 2; ++i) angles[p].push_back(std::cos(p * frequency(i)));
      for (int i = 0; i < kDim / 2; ++i) angles[p].push_back(std::sin(p * frequency(i)));
    }
    for (const auto& row : angles) rows.push_back(row.data());
  }

  static float frequency(int i) { return std::pow(10000.0f, -2.0f * static_cast<float>(i) / kDim); }

  // k + RoPE(b, p), by complex multiplication: (b_i + i b_j) e^(i p f).
  std::vector<float> whole_keys() const {
    std::vector<float> out = keys;
    for (int p = 0; p < kTokens; ++p) {
      for (int i = 0; i < kDim / 2; ++i) {
        const std::complex<double> turned =
            std::complex<double>(bias[i], bias[kDim / 2 + i]) *
            std::polar(1.0, static_cast<double>(static_cast<float>(p) * frequency(i)));
        out[p * kDim + i] += static_cast<float>(turned.real());
        out[p * kDim + kDim / 2 + i] += static_cast<float>(turned.imag());
      }
    }
    return out;
  }

  // Plain softmax attention in double.
  std::vector<float> exact() const {
    const std::vector<float> whole = whole_keys();
    std::vector<float> out;
    for (int p = 0; p < kTokens; ++p) {
      std::vector<double> scores, sums(kDim, 0.0);
      for (int j = 0; j <= p; ++j) {
        double score = 0;
        for (int d = 0; d < kDim; ++d) score += double{queries[p * kDim + d]} * whole[j * kDim + d];
        scores.push_back(score / 8);
      }
      const double top = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (int j = 0; j <= p; ++j) {
        const double weight = std::exp(scores[j] - top);
        total += weight;
        for (int d = 0; d < kDim; ++d) sums[d] += weight * values[j * kDim + d];
      }
      for (const double sum : sums) out.push_back(static_cast<float>(sum / total));
    }
    return out;
  }

  // Mean error of the cache's attention; keys coded, values exact.
  double error(SchemeOptions options, Codec codec, bool factored) const {
    if (factored) options.key_bias = KeyBias::factored;
    const ModelGeometry geometry{"qwen2", 4096, {{1, kDim}}};
    const auto map = uniform_map(scheme_of(options), 1, {codec, Codec::base});
    const CacheLayout layout = cache_layout(map, geometry, BaseType::fp32);
    cache::Pool pool(int64_t{1} << 24);
    cache::KvCache kv(layout, kTokens, pool);
    const std::vector<float> appended = factored ? keys : whole_keys();
    std::vector<float> out(appended.size());
    cache::KvCache::Queries q{queries.data(), out.data(), kDim, kDim, 1, 0.125f};
    if (factored) q.key_bias = {bias.data(), kDim, rows.data()};
    if (!kv.begin_chunk(kTokens).ok()) throw std::runtime_error("no room");
    if (!kv.append(0, {appended.data(), values.data(), kTokens}).ok()) {
      throw std::runtime_error("not appended");
    }
    kv.attend(0, 0, q);
    return mean_difference(out, exact());
  }
};

// Every scheme: 8-bit codes of the small term lose next to nothing, with and without rotation.
TEST(KeyBiasFactoring, CodedTokensKeepTheScores) {
  const Attention attention;
  for (const char* name : {"per-token", "kivi", "kvmix", "kvmix-total"}) {
    for (const Hadamard hadamard : {Hadamard::none, Hadamard::keys}) {
      for (const int sinks : {0, 4}) {
        SchemeOptions options{.name = name, .group = 32, .prefill = Prefill::stepwise};
        options.sinks = sinks;
        options.hadamard = hadamard;
        EXPECT_LT(attention.error(options, Codec::int8, true), 2e-3) << name;
      }
    }
  }
  // An exact window alone: only fp32 rounding of sums of about 60 is left.
  EXPECT_LT(attention.error({.residual = 256}, Codec::int4, true), 1e-5);
}

// What it is for: a bias that dwarfs the rest of the key costs codes their resolution.
TEST(KeyBiasFactoring, LargeBiasesCostNoResolution) {
  const Attention attention;
  for (const Hadamard hadamard : {Hadamard::none, Hadamard::keys}) {
    SchemeOptions options;
    options.hadamard = hadamard;
    const double coded = attention.error(options, Codec::int4, false);
    const double factored = attention.error(options, Codec::int4, true);
    EXPECT_LT(factored, 0.2 * coded) << factored << " with, " << coded << " without";
  }
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

ObservedRanges observed_of(engine::Engine& engine, const std::vector<int32_t>& tokens) {
  const std::vector<engine::SequenceRequest> requests = {{tokens, {}, 1}};
  engine::RunOptions run{.base = BaseType::fp32};
  auto observed = engine.observe_ranges(requests, run, nullptr);
  if (!observed.ok()) throw std::runtime_error(observed.error().message);
  return std::move(observed).value();
}

// All key biases are 40 times what the model was made with.
TEST(Calibration, KeysWithoutTheirBiasAreSmaller) {
  const test::FamilyModel files("qwen2-yarn");
  scale_key_biases(files.dir(), 40.0f);
  auto engine = test::load_engine(files.dir());
  const ObservedRanges observed =
      observed_of(engine, test::random_tokens(60, engine.vocab_size(), 7));
  ASSERT_EQ(observed.unbiased_keys.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    // An orthonormal matrix of 64 changes the largest magnitude at most eightfold.
    EXPECT_LE(observed.rotated_keys[i], 8.001f * observed.keys[i]);
    EXPECT_GE(observed.rotated_keys[i], 0.124f * observed.keys[i]);
    EXPECT_LT(observed.unbiased_keys[i], 0.5f * observed.keys[i]);
  }
}

// Ranges from a real pass: what they came from does not saturate, and much smaller ones do.
// Observing changes nothing that the model computes.
TEST(Calibration, RangesReachWhatWasSeen) {
  const test::FamilyModel files("qwen2-yarn");
  auto engine = test::load_engine(files.dir());
  const auto tokens = test::random_tokens(60, engine.vocab_size(), 7);
  const auto before = engine.logits(baseline_map({}, 2), tokens, BaseType::fp32, 0);
  const ObservedRanges observed = observed_of(engine, tokens);
  EXPECT_EQ(observed_of(engine, tokens), observed);
  EXPECT_EQ(*engine.logits(baseline_map({}, 2), tokens, BaseType::fp32, 0), *before);
  Ranges ranges = *choose(observed, {});
  const auto wide = fp8_logits(engine, ranges, tokens);
  for (float& range : ranges.values) range *= 0.02f;
  const auto narrow = fp8_logits(engine, ranges, tokens);
  EXPECT_LT(mean_difference(wide, *before), 0.5 * mean_difference(narrow, *before))
      << mean_difference(wide, *before);
}

}  // namespace
}  // namespace kvsweep
