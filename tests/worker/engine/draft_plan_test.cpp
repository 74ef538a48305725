// Where drafts are followed, and how many tokens of them are verified.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "worker/engine/draft.hpp"
#include "worker/engine/draft_length.hpp"

namespace kvsweep::engine {
namespace {

using Tokens = std::vector<int32_t>;

// What the draft predicts before each token of the text; -1: nothing.
Tokens predictions(DraftCursor& cursor, const Tokens& text) {
  Tokens out;
  for (const int32_t token : text) {
    const auto next = cursor.next(1);
    out.push_back(next.empty() ? -1 : next[0]);
    cursor.chose(token);
  }
  return out;
}

TEST(DraftCursor, FollowsAndNeverGivesItsLastToken) {
  DraftCursor cursor({1, 2, 3, 4});
  EXPECT_EQ(cursor.next(2).size(), 2u);
  EXPECT_EQ(cursor.next(9).size(), 3u);
  EXPECT_EQ(predictions(cursor, {1, 2, 3, 4, 5}), (Tokens{1, 2, 3, -1, -1}));
  EXPECT_EQ(cursor.use.first_difference, -1);
}

// Each draft differs from the text 10 11 12 ... at one place; two tokens later it counts again.
TEST(DraftCursor, ComesBack) {
  const Tokens text = {10, 11, 12, 13, 14, 15, 16, 17};
  DraftCursor replaced({10, 11, 99, 13, 14, 15, 16, 17, 18});
  EXPECT_EQ(predictions(replaced, text), (Tokens{10, 11, 99, -1, -1, 15, 16, 17}));
  EXPECT_EQ(replaced.use.first_difference, 2);
  EXPECT_EQ(replaced.use.realigned, 1);
  DraftCursor longer({10, 11, 99, 98, 12, 13, 14, 15, 16, 17, 18});
  EXPECT_EQ(predictions(longer, text), (Tokens{10, 11, 99, -1, 14, 15, 16, 17}));
  DraftCursor shorter({10, 11, 13, 14, 15, 16, 17, 18});
  EXPECT_EQ(predictions(shorter, text), (Tokens{10, 11, 13, -1, -1, 15, 16, 17}));
  // Far away four equal tokens are needed: 12 13 14 15.
  DraftCursor far({10, 11, 90, 91, 92, 93, 94, 95, 12, 13, 14, 15, 16, 17, 18});
  EXPECT_EQ(predictions(far, text), (Tokens{10, 11, 90, -1, -1, -1, 16, 17}));
}

// Of two places where the last tokens stand, the one of the smaller shift.
TEST(DraftCursor, PrefersTheNearest) {
  DraftCursor cursor({1, 2, 3, 50, 5, 6, 7, 8, 2, 3, 51});
  EXPECT_EQ(predictions(cursor, {1, 9, 2, 3, 4}), (Tokens{1, 2, -1, -1, 50}));
}

TEST(DraftCursor, GivesUp) {
  DraftCursor cursor({1, 2, 3, 4});
  cursor.chose(1);
  cursor.give_up();
  EXPECT_TRUE(cursor.next(5).empty());
  EXPECT_FALSE(cursor.predicts());
  EXPECT_FALSE(cursor.chose(2));
}

double rate(double slope, int64_t decoding, const std::vector<Offer>& offers) {
  double tokens = static_cast<double>(decoding);
  double rows = tokens;
  for (const Offer& offer : offers) {
    for (int64_t i = 1; i <= offer.count; ++i) tokens += std::pow(offer.chance, i);
    rows += static_cast<double>(offer.count);
  }
  return tokens / (1 + slope * rows);
}

// Against all choices of up to 12 tokens for three offers. The margin for errors costs 3 % at most.
TEST(DraftLength, IsAsFastAsCanBe) {
  std::mt19937_64 rng(5);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int round = 0; round < 60; ++round) {
    const double slope = 0.005 + 0.3 * unit(rng) * unit(rng);
    const int64_t decoding = 3 + static_cast<int64_t>(rng() % 14);
    std::vector<Offer> offers(3);
    for (Offer& offer : offers) offer = {static_cast<int64_t>(rng() % 13), std::sqrt(unit(rng))};
    double best = 0;
    std::vector<Offer> all = offers;
    for (all[0].count = 0; all[0].count <= all[0].most; ++all[0].count) {
      for (all[1].count = 0; all[1].count <= all[1].most; ++all[1].count) {
        for (all[2].count = 0; all[2].count <= all[2].most; ++all[2].count) {
          best = std::max(best, rate(slope, decoding, all));
        }
      }
    }
    choose_lengths(slope, decoding, 100, offers);
    EXPECT_GE(rate(slope, decoding, offers), 0.97 * best);
  }
}

// Worked examples: alone, a token costs a 20th of a step, so a likely one pays; where 64 decode
// already, a row costs as much as its share of the step, and a token that is right every second
// time does not.
TEST(DraftLength, NothingWhereNothingPays) {
  std::vector<Offer> offers = {{60, 0.9}};
  choose_lengths(0.05, 1, 100, offers);
  EXPECT_GT(offers[0].count, 8);
  choose_lengths(0.05, 1, 5, offers);
  EXPECT_EQ(offers[0].count, 5);
  offers[0].chance = 0.5;
  choose_lengths(0.05, 64, 100, offers);
  EXPECT_EQ(offers[0].count, 0);
}

// The slope of noisy steps, one in twenty of which another process held up.
TEST(StepCost, FindsTheSlope) {
  for (const double slope : {0.01, 0.05, 0.3}) {
    std::mt19937_64 rng(7);
    std::uniform_real_distribution<double> noise(0.9, 1.1);
    StepCost cost;
    for (int i = 0; i < 200; ++i) {
      const int64_t rows = 1 + static_cast<int64_t>(rng() % 48);
      const double held_up = i % 20 == 10 ? 5 : 1;
      cost.observe(rows, 40 * (1 + slope * static_cast<double>(rows)) * noise(rng) * held_up);
    }
    EXPECT_GT(cost.slope(), slope / 2);
    EXPECT_LT(cost.slope(), slope * 2);
  }
}

// Steps of one size say nothing of it: what is usual stays.
TEST(StepCost, StartsWithWhatIsUsual) {
  StepCost cost;
  const double usual = cost.slope();
  for (int i = 0; i < 50; ++i) cost.observe(16, 80);
  EXPECT_NEAR(cost.slope(), usual, 0.2 * usual);
}

}  // namespace
}  // namespace kvsweep::engine
