#include "coordinator/study_space.hpp"

#include <gtest/gtest.h>

namespace kvsweep::coordinator {
namespace {

const ModelGeometry kGeometry{.family = "llama", .max_context = 8192, .layers = {4, {2, 64}}};

StudySpec spec() {
  StudySpec spec;
  spec.search.groups = 2;
  spec.at = {.context = 1000, .batch = 3};
  return spec;
}

TEST(StudySpace, DefaultCandidatesAreNinePairsAndTheBaseline) {
  const auto space = StudySpace::make(spec(), kGeometry);
  ASSERT_TRUE(space.ok());
  EXPECT_EQ(space->space().size(), 100);  // 10 per group, 2 groups
  EXPECT_EQ(space->uniform_genomes().size(), 10u);
  for (const auto& genome : space->uniform_genomes()) {
    const PrecisionMap map = space->decode(genome);
    for (const LayerPairs& layer : map.layers) EXPECT_EQ(layer, map.layers[0]);
  }
}

// K8V2 per token, one group per head of 64: K 64 + 4 bytes, V 16 + 4 bytes per head and token;
// pages hold 64 tokens, so 1000 tokens take 16 pages of 64.
TEST(StudySpace, CostIsExact) {
  const auto space = StudySpace::make(spec(), kGeometry);
  ASSERT_TRUE(space.ok());
  const PrecisionMap map = uniform_map(space->scheme(), 4, *pair_from("K8V2"));
  const double per_token = 4 * 2 * (68 + 20);
  EXPECT_EQ(space->cost(map).bytes, per_token * 16 * 64 * 3);
  EXPECT_NEAR(space->cost(map).effective_bits, per_token * 1024 * 8 / (1000 * 4 * 2 * 2 * 64),
              1e-12);
}

TEST(StudySpace, HardLimitHoldsExactlyWhatFits) {
  StudySpec limited = spec();
  limited.at = {.context = 1024, .batch = 1};
  limited.limits.max_bits = 4.5;  // K4V4 with one group per head is exactly 4 + 32 / 64
  const auto space = StudySpace::make(limited, kGeometry);
  ASSERT_TRUE(space.ok());
  const search::HardLimit allowed = space->hard_limit();
  int fitting = 0;
  for (const auto& genome : space->uniform_genomes()) {
    const double bits = space->cost(space->decode(genome)).effective_bits;
    EXPECT_EQ(allowed(genome), bits <= 4.5) << bits;
    fitting += allowed(genome) ? 1 : 0;
  }
  EXPECT_EQ(fitting, 4);  // K2V2, K2V4, K4V2 and K4V4 itself; K2V8 needs 5.5
  EXPECT_NEAR(space->least_bits(), 2.5, 1e-12);
  EXPECT_FALSE(StudySpace::make(spec(), kGeometry)->hard_limit());
}

TEST(StudySpace, ALimitBelowTheLightestMapIsRefused) {
  StudySpec limited = spec();
  limited.at = {.context = 1024, .batch = 1};
  limited.limits.max_bits = 2.5;
  EXPECT_TRUE(StudySpace::make(limited, kGeometry).ok());
  limited.limits.max_bits = 2.49;
  const auto refused = StudySpace::make(limited, kGeometry);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("2.500 effective bits"), std::string::npos)
      << refused.error().message;
}

TEST(StudySpace, TheDefaultNumberOfGroupsFitsModelsWithFewerLayers) {
  StudySpec spec_of_few = spec();
  spec_of_few.search.groups = kDefaultGroups;
  const auto space = StudySpace::make(spec_of_few, kGeometry);
  ASSERT_TRUE(space.ok()) << space.error().message;
  EXPECT_EQ(static_cast<int>(space->space().groups.size()), kGeometry.num_layers());
}

TEST(StudySpace, AWindowAsLongAsTheContextIsRefused) {
  StudySpec windowed = spec();
  windowed.scheme.name = "kivi";
  windowed.scheme.residual = 4096;
  windowed.at.context = 4096;
  const auto refused = StudySpace::make(windowed, kGeometry);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("none of them would be coded"), std::string::npos);
  windowed.at.context = 4097;
  EXPECT_TRUE(StudySpace::make(windowed, kGeometry).ok());
}

TEST(StudySpace, WhatDoesNotFitTheModelIsRefused) {
  StudySpec many = spec();
  many.search.groups = 5;
  EXPECT_FALSE(StudySpace::make(many, kGeometry).ok());
  StudySpec twice = spec();
  twice.search.candidates = {*pair_from("K4V4"), *pair_from("K4V4")};
  EXPECT_FALSE(StudySpace::make(twice, kGeometry).ok());
}

}  // namespace
}  // namespace kvsweep::coordinator
