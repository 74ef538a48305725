// Expected values: tests/core/reference/goldens.py, an independent rewrite.
#include "core/rng.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/fnv.hpp"

namespace kvsweep {
namespace {

TEST(Rng, EqualsTheIndependentRewrite) {
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8u);  // published vector of FNV-1a
  Rng rng(7, "nsga2");
  EXPECT_EQ(rng.next(), 0x99c757adadd6e610u);
  EXPECT_EQ(rng.next(), 0xebf0e6dc964585d4u);
  EXPECT_EQ(rng.next(), 0xf531bbba80f83e38u);
  EXPECT_EQ(rng.next(), 0x56d5113a597ad913u);
  Rng other(1, "word_problems/report");
  EXPECT_EQ(other.next(), 0x8ee81a08a195f2c4u);
  EXPECT_EQ(other.next(), 0xe8f117f3bacf577au);
}

TEST(Rng, UniformTakesTheUpper53Bits) {
  Rng rng(7, "nsga2");
  EXPECT_EQ(rng.uniform(), 0.6006979750653403);
  EXPECT_EQ(rng.uniform(), 0.9216446198027111);
}

TEST(Rng, ResumesFromItsCounter) {
  Rng whole(3, "stream");
  for (int i = 0; i < 10; ++i) whole.next();
  EXPECT_EQ(whole.counter(), 10u);
  Rng resumed(3, "stream", whole.counter());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(resumed.next(), whole.next());
}

TEST(Rng, BelowIsUniformAndBounded) {
  // 60,000 draws below 6: each face has mean 10,000 and standard deviation
  // sqrt(60000 * 1/6 * 5/6) = 91, so 5 deviations are 456.
  Rng rng(11, "dice");
  std::array<int, 6> faces{};
  for (int i = 0; i < 60000; ++i) ++faces.at(rng.below(6));
  for (const int count : faces) EXPECT_NEAR(count, 10000, 456);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.below(1), 0u);
}

TEST(Rng, BelowRejectsTheUnevenRest) {
  // n = 2^63 + 1: 2^64 mod n = 2^63 - 1, so almost half of all draws must be rejected; the
  // counter then grows about twice as fast as the draws. Without rejection it would not.
  Rng rng(5, "reject");
  const uint64_t n = (uint64_t{1} << 63) + 1;
  for (int i = 0; i < 2000; ++i) ASSERT_LT(rng.below(n), n);
  EXPECT_GT(rng.counter(), 3600u);
  EXPECT_LT(rng.counter(), 4400u);
}

TEST(Rng, BetweenHoldsBothEndsAndTheWholeRange) {
  Rng rng(2, "between");
  bool low = false;
  bool high = false;
  for (int i = 0; i < 1000; ++i) {
    const int64_t draw = rng.between(-2, 2);
    ASSERT_TRUE(draw >= -2 && draw <= 2);
    low = low || draw == -2;
    high = high || draw == 2;
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(rng.between(9, 9), 9);
  bool negative = false;
  for (int i = 0; i < 64; ++i) negative = negative || rng.between(INT64_MIN, INT64_MAX) < 0;
  EXPECT_TRUE(negative);
}

TEST(Rng, StreamsAreIndependent) {
  // Correlation of 10,000 pairs of uniforms: standard deviation 1 / sqrt(10000) = 0.01.
  Rng a(1, "a");
  Rng b(1, "b");
  double sum = 0;
  for (int i = 0; i < 10000; ++i) sum += (a.uniform() - 0.5) * (b.uniform() - 0.5) * 12;
  EXPECT_LT(std::fabs(sum / 10000), 0.05);
}

}  // namespace
}  // namespace kvsweep
