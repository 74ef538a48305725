#include "worker/model/rope.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/worker/model/support.hpp"

namespace kvsweep::model {
namespace {

struct Case {
  const char* variant;
  int head_dim;
  int64_t context;
};

class RopeGolden : public testing::TestWithParam<Case> {};

// golden.json holds transformers' inv_freq, printed with 9 digits.
TEST_P(RopeGolden, FrequenciesEqualTransformers) {
  const Case& one = GetParam();
  const auto config = ConfigFields::read(test::tiny_model(one.variant) + "/config.json");
  const auto rope = read_rope(*config, {one.context, one.head_dim});
  ASSERT_TRUE(rope.ok()) << rope.error().message;
  const Json golden = Json::parse(test::read_bytes(test::tiny_model("golden.json")));
  const auto expected = golden.at(one.variant).at("inv_freq").get<std::vector<float>>();
  EXPECT_EQ(inverse_frequencies(*rope, one.head_dim), expected);
}

INSTANTIATE_TEST_SUITE_P(Variants, RopeGolden,
                         testing::Values(Case{"tied_linear", 12, 256},
                                         Case{"untied_llama3", 16, 512}, Case{"plain", 10, 256}));

TEST(RopeTable, HoldsCosinesThenSines) {
  RopeConfig config;
  config.theta = 100.0;
  RopeTable table(config, 4);
  table.reserve(1000);
  // inv_freq = {100^0, 100^(-1/2)} = {1, 0.1}.
  for (const int64_t position : {0, 1, 255, 256, 999}) {
    const float* row = table.row(position);
    const double angle = static_cast<double>(position);
    EXPECT_NEAR(row[0], std::cos(angle), 1e-6);
    EXPECT_NEAR(row[1], std::cos(angle * 0.1), 1e-5);
    EXPECT_NEAR(row[2], std::sin(angle), 1e-6);
    EXPECT_NEAR(row[3], std::sin(angle * 0.1), 1e-5);
  }
}

TEST(RopeTable, RowsDoNotDependOnHowTheTableGrew) {
  RopeConfig config;
  RopeTable at_once(config, 6);
  at_once.reserve(700);
  RopeTable slowly(config, 6);
  for (int64_t positions = 1; positions <= 700; positions += 37) slowly.reserve(positions);
  for (int64_t position = 0; position < 667; ++position) {
    for (int i = 0; i < 6; ++i) EXPECT_EQ(at_once.row(position)[i], slowly.row(position)[i]);
  }
}

RopeConfig dynamic_config() {
  RopeConfig config;
  config.type = RopeType::dynamic;
  config.factor = 3.0;
  config.trained_context = 32;
  return config;
}

// theta (3 * 64 / 32 - 2)^(4/2) = 10000 * 16; its inverse square root is 1 / 400.
TEST(InverseFrequencies, Dynamic) {
  const RopeConfig config = dynamic_config();
  const auto stretched = inverse_frequencies(config, 4, 64);
  EXPECT_FLOAT_EQ(stretched[0], 1.0f);
  EXPECT_FLOAT_EQ(stretched[1], 1.0f / 400);
  EXPECT_FLOAT_EQ(inverse_frequencies(config, 4, 32)[1], 1.0f / 100);
  EXPECT_EQ(inverse_frequencies(config, 4, 1), inverse_frequencies(config, 4, 32));
}

TEST(InverseFrequencies, LongropePicksByLength) {
  RopeConfig config;
  config.type = RopeType::longrope;
  config.theta = 100.0;
  config.original_context = 10;
  config.short_factors = {1.0, 2.0};
  config.long_factors = {4.0, 5.0};
  EXPECT_FLOAT_EQ(inverse_frequencies(config, 4, 10)[1], 0.1f / 2);
  EXPECT_FLOAT_EQ(inverse_frequencies(config, 4, 11)[0], 1.0f / 4);
  EXPECT_FLOAT_EQ(inverse_frequencies(config, 4, 11)[1], 0.1f / 5);
  config.partial = 0.5;  // of 8 channels
  EXPECT_EQ(inverse_frequencies(config, 8, 11).size(), 2u);
}

// d = 8, theta = 10^4, original 2 pi 100: pair d log(100 / turns) / (2 log theta) = log10(100 /
// turns) turns so often, so 100 turns are pair 0 and 1 is pair 2; the ramp between them divides by
// 10 more and more.
TEST(InverseFrequencies, Yarn) {
  RopeConfig config;
  config.type = RopeType::yarn;
  config.factor = 10.0;
  config.original_context = 628;  // 2 pi 100 = 628.3
  config.beta_fast = 100.0;
  config.beta_slow = 1.0;
  const auto found = inverse_frequencies(config, 8);
  // low = floor(-0.0002) = -1, at least 0; high = ceil(1.9998) = 2: ramp i / 2.
  for (int i = 0; i < 4; ++i) {
    const double plain = std::pow(10000.0, -i / 4.0);
    const double ramp = std::min(i / 2.0, 1.0);
    EXPECT_NEAR(found[static_cast<size_t>(i)], plain * (1 - ramp) + plain / 10 * ramp, 1e-7);
  }
}

TEST(RopeTables, OneForEachClassOfLengths) {
  RopeTables tables(dynamic_config(), 4);
  const float* trained = tables.row(5, 3);
  EXPECT_EQ(tables.row(32, 3), trained);
  const float* longer = tables.row(64, 3);
  EXPECT_NE(longer, trained);
  EXPECT_FLOAT_EQ(longer[1], std::cos(3.0f / 400));
  for (int64_t length = 100; length < 200; ++length) tables.row(length, 3);
  EXPECT_EQ(tables.row(64, 3), longer);  // nothing is forgotten before trim
  tables.trim();
  EXPECT_FLOAT_EQ(tables.row(64, 3)[1], std::cos(3.0f / 400));
}

TEST(RopeTable, AttentionFactorMultiplies) {
  RopeConfig config;
  RopeTable plain(config, 6);
  config.attention_factor = 1.25;
  RopeTable sharper(config, 6);
  plain.reserve(300);
  sharper.reserve(300);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(sharper.row(299)[i], 1.25f * plain.row(299)[i]);
}

}  // namespace
}  // namespace kvsweep::model
