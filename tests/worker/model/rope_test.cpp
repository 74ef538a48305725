#include "worker/model/rope.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kvsweep::model
