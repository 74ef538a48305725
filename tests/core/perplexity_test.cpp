#include "core/perplexity.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kvsweep {
namespace {

Measurement said(const std::string& text) {
  Measurement m;
  m.text = text;
  return m;
}

TEST(Perplexity, IsOfAllTokensTogether) {
  // 3 nats over 1 token and 5 over 3: exp(8 / 4), not the mean of exp(3) and exp(5/3).
  const auto found = perplexity({said(R"({"log_likelihood": -3.0, "tokens": 1})"),
                                 said(R"({"log_likelihood": -5.0, "tokens": 3})")});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->value, std::exp(2.0));
  EXPECT_EQ(found->per, "token");
}

TEST(Perplexity, IsPerWordWhereWordsAreCounted) {
  const auto found = perplexity({said(R"({"log_likelihood": -6.0, "tokens": 9, "words": 4})"),
                                 said(R"({"log_likelihood": -2.0, "tokens": 5, "words": 4})")});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->value, std::exp(1.0));
  EXPECT_EQ(found->per, "word");
}

TEST(Perplexity, IsAbsentForOtherTasks) {
  EXPECT_FALSE(perplexity({}));
  EXPECT_FALSE(perplexity({said("The answer is 5.")}));
  EXPECT_FALSE(perplexity({said(R"({"log_likelihoods": [-1, -2], "tokens": [1, 1]})")}));
  EXPECT_FALSE(perplexity({said(R"({"log_likelihood": -1, "tokens": 0})")}));
}

}  // namespace
}  // namespace kvsweep
