// NSGA-II beyond the contract: phases, ladder, constraints, seeds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "search/algorithms/evolution/mutation.hpp"
#include "tests/search/support/drive.hpp"

namespace kvsweep::search {
namespace {

using testing::drive;
using testing::DriveLog;
using testing::feasible;
using testing::make;
using testing::random_table;
using testing::space_of;

int sum(const Genome& genome) {
  return std::accumulate(genome.begin(), genome.end(), 0);
}

std::map<std::string, int> origins(const std::vector<Proposal>& proposals) {
  std::map<std::string, int> counts;
  for (const Proposal& proposal : proposals) ++counts[proposal.origin];
  return counts;
}

TEST(Nsga2, UniformThenRandomUntilThePopulationIsFullThenChildren) {
  const auto problem = random_table({5, 5, 5, 5, 5, 5}, 0.3, 1);
  auto algorithm = make("nsga2", problem.space, {.population = 12});
  const DriveLog log = drive(*algorithm, feasible(problem.evaluate), {.budget = 200});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(log.proposals[i].genome, Genome(6, i));
  for (int i = 5; i < 12; ++i) EXPECT_EQ(log.proposals[i].origin, "random");
  for (size_t i = 12; i < 200; ++i) EXPECT_FALSE(log.proposals[i].parents.empty());
  const auto counts = origins(log.proposals);
  // A child has two parents with probability 0.9: 169 of 188, give or take 4.5 * sqrt(17) = 19; the
  // few that come from the neighbour step are not bred.
  EXPECT_NEAR(counts.at("crossover"), 169, 25);
  EXPECT_GT(counts.at("mutation"), 0);
}

TEST(Nsga2, SeedsDiffer) {
  const auto problem = random_table({5, 5, 5, 5, 5, 5}, 0.3, 1);
  const auto run = [&](uint64_t seed) {
    auto algorithm = make("nsga2", problem.space, {.population = 8, .seed = seed});
    std::set<Genome> genomes;
    for (const Proposal& p :
         drive(*algorithm, feasible(problem.evaluate), {.budget = 100}).proposals) {
      genomes.insert(p.genome);
    }
    return genomes;
  };
  EXPECT_NE(run(1), run(2));
}

// All parents are told members: a proposal never names one that failed or is pending.
TEST(Nsga2, FailuresAndPendingOnesAreNeverParents) {
  const auto problem = random_table({5, 5, 5, 5}, 0.3, 2);
  auto algorithm = make("nsga2", problem.space, {.population = 10});
  std::set<int64_t> eligible;
  Rng order(3, "order");
  std::vector<Proposal> pending;
  for (int i = 0; i < 300; ++i) {
    const Proposal proposal = *algorithm->ask();
    for (int64_t parent : proposal.parents) EXPECT_TRUE(eligible.contains(parent));
    pending.push_back(proposal);
    if (pending.size() < 8) continue;
    const size_t index = order.below(pending.size());
    Told told{pending[index].number, pending[index].genome, Outcome::feasible,
              problem.evaluate(pending[index].genome), 0};
    if (told.number % 3 == 0) {
      told.outcome = Outcome::failed;
      told.objectives = {-1e9, -1e9};  // must not be looked at
    } else {
      eligible.insert(told.number);
    }
    algorithm->tell(told);
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

// Two members that tie in everything but children: every tournament is between them, and the one
// with fewer children wins, so they stay even although nothing is told. Decided by genome alone,
// one of them would have about 20 more (those of the 10 % with a single parent).
TEST(Nsga2, PendingChildrenSpreadTheBreeding) {
  auto algorithm = make("nsga2", testing::bits(40), {.population = 2});
  for (const Objectives& f : {Objectives{1, 2}, Objectives{2, 1}}) {
    const Proposal proposal = *algorithm->ask();
    algorithm->tell({proposal.number, proposal.genome, Outcome::feasible, f, 0});
  }
  std::map<int64_t, int> children;
  int single = 0;
  for (int i = 0; i < 200; ++i) {
    const Proposal proposal = *algorithm->ask();
    for (int64_t parent : proposal.parents) ++children[parent];
    single += proposal.parents.size() == 1;
    EXPECT_LE(std::abs(children[0] - children[1]), 1);
  }
  EXPECT_GT(single, 5);
}

// Everything fails: it neither crashes nor repeats, and ends.
TEST(Nsga2, SurvivesWhenEverythingFails) {
  auto algorithm = make("nsga2", space_of({5, 5, 5}), {.population = 6});
  const DriveLog log = drive(*algorithm,
                             [](const Proposal& p) {
                               return Told{p.number, p.genome, Outcome::failed, {}, 0};
                             },
                             {.budget = 1000, .workers = 4});
  EXPECT_TRUE(log.exhausted);
  EXPECT_EQ(log.proposals.size(), 125u);
  EXPECT_EQ(origins(log.proposals),
            (std::map<std::string, int>{{"uniform", 5}, {"random", 120}}));  // nobody bred
}

// Only genomes of sum >= 20 of 24 are feasible, the violation is how much is missing: the search
// climbs there although the infeasible genomes have the smaller bytes.
TEST(Nsga2, ClimbsIntoTheFeasibleRegion) {
  const Space space = space_of({5, 5, 5, 5, 5, 5});
  auto algorithm = make("nsga2", space, {.population = 10, .allowed = [](const Genome& g) {
                                           return g != Genome(6, 4) && g != Genome(6, 3);
                                         }});
  int feasible_late = 0;
  const DriveLog log =
      drive(*algorithm,
            [&](const Proposal& p) {
              Told told{p.number, p.genome, Outcome::feasible, {1.0 * sum(p.genome), 0}, 0};
              if (sum(p.genome) < 20) {
                told.outcome = Outcome::infeasible;
                told.violation = (20 - sum(p.genome)) / 20.0;
              } else if (p.number >= 150) {
                ++feasible_late;
              }
              return told;
            },
            {.budget = 200});
  EXPECT_EQ(log.proposals.size(), 200u);
  // 210 + 126 + 56 + 21 + 6 + 1 = 420 sums of 24..19 are close to the border; uniform draws hit the
  // feasible region (209 of 15,625 left) 1.3 % of the time.
  EXPECT_GE(feasible_late, 15);
}

// When nothing but steps from the archive is left near the front, they are taken before random
// genomes anywhere: the proposal is one step from its parent.
TEST(Nsga2, NeighboursOfTheArchiveAreOneStepFromTheirParent) {
  const auto problem = random_table({4, 4, 4, 4}, 0.2, 6);
  auto algorithm = make("nsga2", problem.space, {.population = 6});
  const DriveLog log = drive(*algorithm, feasible(problem.evaluate), {.budget = 256, .workers = 4});
  const auto counts = origins(log.proposals);
  ASSERT_GT(counts.at("neighbour"), 0);
  ASSERT_GT(counts.at("random"), 0);  // the end game
  for (const Proposal& proposal : log.proposals) {
    if (proposal.origin != "neighbour") continue;
    ASSERT_EQ(proposal.parents.size(), 1u);
    const auto around =
        one_step_neighbours(problem.space, log.proposals[proposal.parents[0]].genome);
    EXPECT_NE(std::find(around.begin(), around.end(), proposal.genome), around.end());
  }
}

// A child beyond the limit is lowered, so a tight limit in a huge space still breeds: 5^30 genomes,
// of which sum <= 4 allows 46,000. Dropping such children instead sends one ask in five to the
// ladder.
TEST(Nsga2, BreedsUnderATightLimit) {
  const auto problem = random_table(std::vector<int>(30, 5), 0, 7);
  auto algorithm = make("nsga2", problem.space,
                        {.population = 16, .allowed = [](const Genome& g) { return sum(g) <= 4; }});
  const DriveLog log = drive(*algorithm, feasible(problem.evaluate), {.budget = 400, .workers = 8});
  EXPECT_EQ(log.proposals.size(), 400u);
  auto counts = origins(log.proposals);
  EXPECT_LE(counts["neighbour"] + counts["random"], 15 + 20);  // 15 fill the population
  for (const Proposal& proposal : log.proposals) EXPECT_LE(sum(proposal.genome), 4);
}

}  // namespace
}  // namespace kvsweep::search
