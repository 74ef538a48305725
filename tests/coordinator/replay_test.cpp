#include "coordinator/replay.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.hpp"

namespace kvsweep::coordinator {
namespace {

const ModelGeometry kGeometry{.family = "llama", .max_context = 4096, .layers = {8, {2, 64}}};

search::Space space() {
  std::vector<Pair> pairs;
  for (const char* name : {"K2V2", "K4V2", "K4V4", "K8V4", "K8V8"}) {
    pairs.push_back(*pair_from(name));
  }
  return *search::even_groups(8, 4, pairs, *make_scheme({}), kGeometry, BaseType::fp16);
}

std::unique_ptr<search::Algorithm> algorithm(uint64_t seed = 11) {
  return std::move(*search::make_algorithm("nsga2", space(), {.population = 8, .seed = seed}));
}

// Runs a search with up to `width` trials in flight, told in a shuffled order, and records it as
// the store would.
std::vector<store::TrialRow> record(search::Algorithm& search, int trials, size_t width,
                                    const LimitsSpec& limits) {
  Rng random(5, "test");
  std::vector<store::TrialRow> rows;
  std::vector<size_t> flying;
  int64_t told = 0;
  while (static_cast<int>(rows.size()) < trials) {
    while (flying.size() < width && static_cast<int>(rows.size()) < trials) {
      const auto proposal = search.ask();
      flying.push_back(rows.size());
      rows.push_back(
          {.number = proposal->number, .genome = proposal->genome, .tells_before = told});
    }
    const size_t pick = random.below(flying.size());
    store::TrialRow& row = rows[flying[pick]];
    flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(pick));
    row.bytes = 0;
    double loss = 0;
    for (int gene : row.genome) {
      row.bytes += gene + 1;
      loss += 0.1 / (1 + gene * gene);
    }
    row.loss = loss;
    row.state = row.genome[0] == 3 ? store::TrialState::failed : state_of(loss, limits);
    row.tell_order = told++;
    search.tell(told_of(row, limits));
  }
  return rows;
}

std::vector<search::Genome> continue_with(search::Algorithm& search, int count) {
  std::vector<search::Genome> genomes;
  for (int i = 0; i < count; ++i) {
    const auto proposal = search.ask();
    if (!proposal) break;
    genomes.push_back(proposal->genome);
  }
  return genomes;
}

TEST(Replay, TheNextProposalsAreThoseOfTheUninterruptedSearch) {
  const LimitsSpec limits{.max_loss = 0.2};
  for (const size_t width : {1, 3, 8}) {
    for (const int trials : {1, 7, 40, 90}) {
      const auto original = algorithm();
      const std::vector<store::TrialRow> rows = record(*original, trials, width, limits);
      const auto restored = algorithm();
      const auto replayed = replay(*restored, rows, limits);
      ASSERT_TRUE(replayed.ok()) << replayed.error().message;
      EXPECT_EQ(replayed->asked, trials);
      EXPECT_EQ(replayed->told + static_cast<int64_t>(replayed->pending.size()), trials);
      EXPECT_EQ(continue_with(*restored, 30), continue_with(*original, 30)) << width << trials;
    }
  }
}

// Without the interleaving the state is another one, which is why it is recorded.
TEST(Replay, TheInterleavingMatters) {
  const auto original = algorithm();
  std::vector<store::TrialRow> rows = record(*original, 60, 6, {});
  for (store::TrialRow& row : rows) row.tells_before = std::max<int64_t>(0, row.tells_before - 5);
  const auto restored = algorithm();
  EXPECT_FALSE(replay(*restored, rows, {}).ok());
}

TEST(Replay, AnotherSearchIsNoticed) {
  const auto original = algorithm();
  const std::vector<store::TrialRow> rows = record(*original, 30, 1, {});
  const auto other = algorithm(12);
  const auto replayed = replay(*other, rows, {});
  ASSERT_FALSE(replayed.ok());
  EXPECT_EQ(replayed.error().code, ErrorCode::conflict);
  EXPECT_NE(replayed.error().message.find("trial "), std::string::npos);
}

TEST(Replay, ToldOfCarriesTheRelativeViolation) {
  store::TrialRow trial{.number = 4,
                        .genome = {1, 2},
                        .state = store::TrialState::infeasible,
                        .bytes = 10,
                        .loss = 0.06};
  const search::Told told = told_of(trial, {.max_loss = 0.02});
  EXPECT_EQ(told.outcome, search::Outcome::infeasible);
  EXPECT_NEAR(told.violation, 2.0, 1e-12);  // (0.06 - 0.02) / 0.02
  EXPECT_EQ(told.objectives.bytes, 10);
  // A limit of zero has no scale of its own; the violation stays finite and positive.
  const search::Told zero = told_of(trial, {.max_loss = 0.0});
  EXPECT_GT(zero.violation, 0);
  EXPECT_TRUE(std::isfinite(zero.violation));
  trial.state = store::TrialState::failed;
  trial.loss.reset();
  EXPECT_EQ(told_of(trial, {}).outcome, search::Outcome::failed);
}

}  // namespace
}  // namespace kvsweep::coordinator
