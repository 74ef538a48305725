// The contract of a model family, over all of core/catalog/families.def: transformers' logits and
// greedy tokens in fp32, and results that do not depend on batch or chunk.
//   engine_test --gtest_filter='*FamilyParity*'   prints the table of differences
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "tests/worker/engine/family_models.hpp"
#include "tests/worker/engine/support.hpp"

namespace kvsweep {
namespace {

constexpr double kTolerance = 1e-3;

using Sequences = std::vector<std::vector<int32_t>>;

std::unique_ptr<model::Model> load(const std::string& dir) {
  auto loaded = model::load_model(dir, {1});
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
  return std::move(loaded).value();
}

test::BatchSpec exact_spec(const model::Model& model) {
  test::BatchSpec spec;
  spec.map = test::make_map("baseline", model.geometry().num_layers());
  spec.base = BaseType::fp32;
  return spec;
}

Sequences prompts_of(const Json& cases) {
  Sequences out;
  for (const Json& one : cases) out.push_back(one.at("tokens").get<std::vector<int32_t>>());
  return out;
}

double largest_difference(const std::string& variant) {
  const test::FamilyModel files(variant);
  const auto model = load(files.dir());
  const Json& cases = test::family_goldens().at(variant).at("cases");
  const auto logits = test::batch_logits(*model, exact_spec(*model), prompts_of(cases));
  double largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double one = test::golden_difference(cases[i], logits[i], model->vocab_size());
    if (!(one <= largest)) largest = one;
  }
  return largest;
}

// RoPE types as config.json names them, and windows.
std::string describe(const Json& config) {
  std::string text = fmt::format("heads of {}", config.value("head_dim", 0));
  if (!config.contains("head_dim")) {
    text = fmt::format("heads of {}", config.at("hidden_size").get<int>() /
                                          config.at("num_attention_heads").get<int>());
  }
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.contains(key)) continue;
    const Json& rope = config.at(key);
    const Json& flat = rope.contains("full_attention") ? rope.at("full_attention") : rope;
    text += ", " + flat.value("rope_type", flat.value("type", std::string()));
  }
  const Json window = config.value("sliding_window", Json());
  const bool used = window.is_number() && window < config.at("max_position_embeddings");
  return used ? fmt::format("{}, window {}", text, window.get<int>()) : text;
}

TEST(FamilyParity, TableOfDifferences) {
  std::cout << fmt::format("{:<20} {:<32} {}\n", "variant", "what it has", "max |difference|");
  for (const std::string& variant : test::family_variants()) {
    const double largest = largest_difference(variant);
    std::cout << fmt::format("{:<20} {:<32} {:.2e}\n", variant,
                             describe(test::family_goldens().at(variant).at("config")), largest);
    EXPECT_LE(largest, kTolerance) << variant;
  }
}

// A family without a golden is not tested: the table of families and the goldens must agree.
TEST(FamilyParity, EveryFamilyHasAVariant) {
  std::vector<std::string> tested = {"llama"};
  for (const std::string& variant : test::family_variants()) {
    tested.push_back(test::family_of(variant));
  }
  for (const FamilyInfo& family : families()) {
    EXPECT_NE(std::find(tested.begin(), tested.end(), std::string(family.name)), tested.end())
        << family.name;
  }
}

class Family : public testing::TestWithParam<std::string> {
 protected:
  Family() : files_(GetParam()), golden_(test::family_goldens().at(GetParam())) {}
  test::FamilyModel files_;
  const Json& golden_;
};

TEST_P(Family, GeometryIsThatOfTheCoordinator) {
  const auto geometry = read_geometry(files_.dir());
  ASSERT_TRUE(geometry.ok()) << geometry.error().message;
  EXPECT_EQ(load(files_.dir())->geometry(), *geometry);
  EXPECT_EQ(geometry->family, test::family_of(GetParam()));
}

// All prompts decode together.
TEST_P(Family, GreedyTokensAreThoseOfTransformers) {
  engine::Engine engine = test::load_engine(files_.dir());
  std::vector<engine::SequenceRequest> requests;
  Sequences expected;
  for (const Json& one : golden_.at("cases")) {
    if (one.at("greedy").empty()) continue;
    engine::SequenceRequest request;
    request.prompt = one.at("tokens").get<std::vector<int32_t>>();
    request.max_new_tokens = static_cast<int>(one.at("greedy").size());
    requests.push_back(request);
    expected.push_back(one.at("greedy").get<std::vector<int32_t>>());
  }
  engine::RunOptions options;
  options.base = BaseType::fp32;
  const auto outputs =
      engine.run(test::make_map("baseline", engine.geometry().num_layers()), requests, options);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ((*outputs)[i].tokens, expected[i]) << "prompt of " << requests[i].prompt.size();
  }
}

// Of all sequences in one batch, of each alone, and in chunks.
void expect_same_logits(model::Model& model, test::BatchSpec spec, const Sequences& sequences) {
  spec.chunk = 64;
  const auto together = test::batch_logits(model, spec, sequences);
  for (size_t i = 0; i < sequences.size(); ++i) {
    for (const int64_t chunk : {1, 7, 64}) {
      spec.chunk = chunk;
      const auto alone = test::batch_logits(model, spec, {sequences[i]})[0];
      EXPECT_TRUE(alone == together[i])
          << sequences[i].size() << " tokens in chunks of " << chunk << ": largest difference "
          << test::largest_difference(alone, together[i]);
    }
  }
}

TEST_P(Family, LogitsDoNotDependOnBatchOrChunk) {
  const auto model = load(files_.dir());
  if (!model->batch_invariant()) GTEST_SKIP() << "this processor's GEMM is not batch-invariant";
  Sequences sequences = prompts_of(golden_.at("cases"));
  for (const int64_t length : {2, 31}) {
    sequences.push_back(test::random_tokens(length, model->vocab_size(), 7));
  }
  test::BatchSpec spec = exact_spec(*model);
  expect_same_logits(*model, spec, sequences);
  for (const char* kind : {"per-token", "kivi", "kivi-exact"}) {
    spec.map = test::make_map(kind, model->geometry().num_layers());
    expect_same_logits(*model, spec, sequences);
  }
}

// Frequencies that depend on the length depend on the longest that the request allows, so a forced
// pass of a short output sees the keys that its generation saw.
class LengthTest : public testing::TestWithParam<std::string> {};

TEST_P(LengthTest, ForcedPassSeesTheKeysOfTheGeneration) {
  const test::FamilyModel files(GetParam());
  engine::Engine engine = test::load_engine(files.dir());
  const PrecisionMap plain = test::make_map("baseline", engine.geometry().num_layers());
  engine::SequenceRequest request;
  request.prompt = test::random_tokens(20, engine.vocab_size(), 3);
  request.max_new_tokens = 30;  // 49 tokens: beyond the 32 of both models
  const auto generated = engine.run(plain, {request}, {});
  ASSERT_TRUE(generated.ok()) << generated.error().message;
  const std::vector<int32_t> tokens = (*generated)[0].tokens;

  request.reference.assign(tokens.begin(), tokens.begin() + 6);
  const auto forced = engine.run(plain, {request}, {});
  ASSERT_TRUE(forced.ok()) << forced.error().message;
  EXPECT_EQ((*forced)[0].argmax, request.reference);

  request.max_new_tokens = 6;  // 25 tokens: other frequencies
  const auto shorter = engine.run(plain, {request}, {});
  ASSERT_TRUE(shorter.ok()) << shorter.error().message;
  EXPECT_GT(std::fabs((*shorter)[0].nll - (*forced)[0].nll), 1e-4);
}

TEST_P(LengthTest, BaselinesOfLengthsAreKeptApart) {
  const test::FamilyModel files(GetParam());
  engine::Engine used = test::load_engine(files.dir());
  const PrecisionMap map = test::make_map("kivi", used.geometry().num_layers());
  engine::SequenceRequest request;
  request.prompt = test::random_tokens(20, used.vocab_size(), 4);
  request.reference = test::random_tokens(6, used.vocab_size(), 5);
  ASSERT_TRUE(used.run(map, {request}, {}).ok());
  request.max_new_tokens = 30;
  const auto again = used.run(map, {request}, {});
  engine::Engine fresh = test::load_engine(files.dir());
  const auto first = fresh.run(map, {request}, {});
  ASSERT_TRUE(again.ok() && first.ok());
  EXPECT_EQ((*again)[0].kl, (*first)[0].kl);
}

INSTANTIATE_TEST_SUITE_P(Variants, LengthTest, testing::Values("phi3-longrope", "llama-dynamic"),
                         [](const auto& info) { return info.index == 0 ? "longrope" : "dynamic"; });

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Variants, Family, testing::ValuesIn(test::family_variants()), test_name);

}  // namespace
}  // namespace kvsweep
