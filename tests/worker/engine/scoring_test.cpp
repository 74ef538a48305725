#include "worker/engine/scoring.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/rng.hpp"

namespace kvsweep::engine {
namespace {

std::vector<float> random_row(int64_t vocab, uint64_t seed, double width) {
  Rng rng(seed, "logits");
  std::vector<float> row;
  for (int64_t i = 0; i < vocab; ++i) row.push_back(static_cast<float>(rng.uniform() * width));
  return row;
}

TEST(Summarise, TakesTheLowestOfEqualMaxima) {
  // log sum exp(1, 3, 3, 2) = 3 + log(1 + 1 + e^-1 + e^-2) = 3.917...
  const std::vector<float> row = {1, 3, 3, 2};
  const auto found = summarise(row.data(), 4);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->argmax, 1);
  EXPECT_NEAR(found->log_sum, 3 + std::log(2 + std::exp(-1.0) + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(*argmax(row.data(), 4), 1);
}

TEST(Summarise, RefusesWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {size_t{0}, size_t{17}, size_t{40}}) {
      std::vector<float> row = random_row(41, 3, 5);
      row[at] = bad;
      const auto found = summarise(row.data(), 41);
      ASSERT_FALSE(found.ok());
      EXPECT_EQ(found.error().code, ErrorCode::numerics);
      EXPECT_FALSE(argmax(row.data(), 41).ok());
    }
  }
}

TEST(KlDivergence, EqualsTheDefinitionIn64Bits) {
  for (const int64_t vocab : {1, 15, 16, 1000, 49152}) {
    const auto p = random_row(vocab, 1, 12);
    const auto q = random_row(vocab, 2, 12);
    double sum_p = 0, sum_q = 0, expected = 0;
    for (int64_t i = 0; i < vocab; ++i) {
      sum_p += std::exp(static_cast<double>(p[i]));
      sum_q += std::exp(static_cast<double>(q[i]));
    }
    for (int64_t i = 0; i < vocab; ++i) {
      const double log_p = p[i] - std::log(sum_p);
      expected += std::exp(log_p) * (log_p - (q[i] - std::log(sum_q)));
    }
    const RowSummary row_p = *summarise(p.data(), vocab);
    const RowSummary row_q = *summarise(q.data(), vocab);
    const double found = kl_divergence(p.data(), row_p, q.data(), row_q, vocab);
    EXPECT_NEAR(found, expected, 2e-6 * (1 + expected)) << vocab;
    EXPECT_EQ(kl_divergence(p.data(), row_p, p.data(), row_p, vocab), 0);
  }
}

TEST(BaselineCache, KeepsTheMostRecentWithinItsBudget) {
  const auto scores = [] { return std::make_shared<const BaselineScores>(1, 100); };
  BaselineCache cache(2 * scores()->bytes());
  cache.put("a", scores());
  cache.put("b", scores());
  EXPECT_NE(cache.find("a"), nullptr);  // now more recent than b
  cache.put("c", scores());
  EXPECT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_NE(cache.find("c"), nullptr);
  EXPECT_LE(cache.used_bytes(), cache.budget_bytes());
  cache.put("huge", std::make_shared<const BaselineScores>(3, 100));
  EXPECT_EQ(cache.find("huge"), nullptr);
  EXPECT_NE(cache.find("a"), nullptr);
}

TEST(BaselineCache, KeysTellSequencesApart) {
  const auto key = [](std::vector<int32_t> tokens, int64_t first, BaseType base) {
    return BaselineCache::key(tokens, first, base);
  };
  const std::string plain = key({1, 2, 3}, 1, BaseType::fp16);
  EXPECT_EQ(plain, key({1, 2, 3}, 1, BaseType::fp16));
  EXPECT_NE(plain, key({1, 2, 4}, 1, BaseType::fp16));
  EXPECT_NE(plain, key({1, 2, 3}, 2, BaseType::fp16));
  EXPECT_NE(plain, key({1, 2, 3}, 1, BaseType::bf16));
}

}  // namespace
}  // namespace kvsweep::engine
