// What every entry of algorithms.def must do. A new algorithm is tested by being in the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "tests/search/support/drive.hpp"

namespace kvsweep::search {
namespace {

using testing::bits;
using testing::drive;
using testing::DriveLog;
using ::testing::HasSubstr;
using testing::make;
using testing::random_table;
using testing::space_of;

class AlgorithmContract : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : algorithms()) names.emplace_back(info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, AlgorithmContract, ::testing::ValuesIn(all_names()),
                         [](const auto& info) { return info.param; });

int sum(const Genome& genome) {
  return std::accumulate(genome.begin(), genome.end(), 0);
}

// Every fifth evaluation fails, every seventh is infeasible (one with a NaN), one is NaN in
// disguise.
Told mixed(const Proposal& p, const Objectives& f) {
  Told told{p.number, p.genome, Outcome::feasible, f, 0};
  if (p.number % 5 == 4) told.outcome = Outcome::failed;
  if (p.number % 7 == 6) {
    told.outcome = Outcome::infeasible;
    told.violation =
        p.number == 6 ? std::numeric_limits<double>::quiet_NaN() : 0.01 * sum(p.genome);
  }
  if (p.number % 11 == 10) told.objectives.loss = std::numeric_limits<double>::quiet_NaN();
  return told;
}

testing::Measure mixed_measure(const testing::Problem& problem) {
  return [problem](const Proposal& p) { return mixed(p, problem.evaluate(p.genome)); };
}

void expect_same(const std::vector<Proposal>& a, const std::vector<Proposal>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].number, b[i].number);
    EXPECT_EQ(a[i].genome, b[i].genome) << "proposal " << i;
    EXPECT_EQ(a[i].parents, b[i].parents);
    EXPECT_EQ(a[i].origin, b[i].origin);
  }
}

TEST_P(AlgorithmContract, ExhaustsFourGroupsOfFiveAfterExactly625) {
  const auto problem = random_table({5, 5, 5, 5}, 0.3, 1);
  for (int workers : {1, 8}) {
    auto algorithm = make(GetParam(), problem.space);
    const DriveLog log = drive(*algorithm, mixed_measure(problem),
                               {.budget = 10000, .workers = workers, .order_seed = 5});
    EXPECT_TRUE(log.exhausted);
    EXPECT_FALSE(log.duplicates);
    EXPECT_EQ(log.proposals.size(), 625u);
    for (size_t i = 0; i < log.proposals.size(); ++i) {
      EXPECT_EQ(log.proposals[i].number, static_cast<int64_t>(i));
      EXPECT_TRUE(problem.space.contains(log.proposals[i].genome));
      for (int64_t parent : log.proposals[i].parents) {
        EXPECT_GE(parent, 0);
        EXPECT_LT(parent, log.proposals[i].number);
      }
    }
    EXPECT_FALSE(algorithm->ask().has_value());  // and stays exhausted
  }
}

TEST_P(AlgorithmContract, IsExhaustedWhileTheLastOnesArePending) {
  const Space space = space_of({2, 3});
  auto algorithm = make(GetParam(), space);
  std::set<Genome> genomes;
  for (int i = 0; i < 6; ++i) {
    const auto proposal = algorithm->ask();
    ASSERT_TRUE(proposal.has_value());
    genomes.insert(proposal->genome);
  }
  EXPECT_EQ(genomes.size(), 6u);
  EXPECT_FALSE(algorithm->ask().has_value());
}

TEST_P(AlgorithmContract, ProposesExactlyWhatTheLimitAllows) {
  const auto problem = random_table({5, 5, 5, 5}, 0, 2);
  const std::vector<std::pair<HardLimit, size_t>> limits = {
      {[](const Genome& g) { return sum(g) <= 1; }, 5},   // 0000 and four with a single 1
      {[](const Genome& g) { return sum(g) >= 16; }, 1},  // only 4444: not closed downwards
      {[](const Genome& g) {
         return g == Genome{3, 1, 4, 1};
       },
       1},
      {[](const Genome&) { return false; }, 0}};
  for (const auto& [limit, count] : limits) {
    auto algorithm = make(GetParam(), problem.space, {.allowed = limit});
    const DriveLog log = drive(*algorithm, mixed_measure(problem), {.budget = 10000, .workers = 3});
    EXPECT_TRUE(log.exhausted);
    EXPECT_EQ(log.proposals.size(), count);
    for (const Proposal& proposal : log.proposals) EXPECT_TRUE(limit(proposal.genome));
  }
}

TEST_P(AlgorithmContract, GivenGenomesComeFirst) {
  const Space space = space_of({5, 5, 5});
  AlgorithmOptions options;
  options.initial = {{4, 0, 4}, {1, 2, 3}, {4, 0, 4}, {4, 4, 4}, {0, 0, 3}};
  options.allowed = [](const Genome& g) { return sum(g) < 12; };
  auto algorithm = make(GetParam(), space, options);
  for (const Genome& expected : {Genome{4, 0, 4}, Genome{1, 2, 3}, Genome{0, 0, 3}}) {
    const auto proposal = algorithm->ask();
    EXPECT_EQ(proposal->genome, expected);
    EXPECT_EQ(proposal->origin, "initial");
    EXPECT_TRUE(proposal->parents.empty());
  }
}

TEST_P(AlgorithmContract, SameSeedAndTellsGiveTheSameAsks) {
  const auto problem = random_table({5, 5, 5, 5}, 0.3, 3);
  const auto run = [&](uint64_t seed) {
    auto algorithm = make(GetParam(), problem.space, {.population = 10, .seed = seed});
    return drive(*algorithm, mixed_measure(problem), {.budget = 300, .workers = 8}).proposals;
  };
  expect_same(run(7), run(7));
}

// Stops in the middle with proposals out, restores proposals by number and then tells in order, and
// must go on as the uninterrupted run does.
TEST_P(AlgorithmContract, ResumesFromTheRecordAsIfNothingHadHappened) {
  // Few distinct values, so that ties, which the number of children decides, are common.
  auto problem = random_table({4, 4, 4, 4}, 0.3, 4);
  problem.evaluate = [](const Genome& g) {
    return Objectives{1.0 * sum(g), 12.0 - sum(g) + (g[0] == g[1] ? 0 : 1)};
  };
  const AlgorithmOptions options{.population = 8, .seed = 3, .initial = {{1, 2, 3, 0}}};
  for (int64_t cut : {1, 5, 9, 40, 200, 250}) {
    auto first = make(GetParam(), problem.space, options);
    std::vector<Proposal> proposals;
    std::vector<Told> tells;
    std::vector<Proposal> pending;
    Rng order(11, "order");
    for (int64_t i = 0; i < cut; ++i) {
      proposals.push_back(*first->ask());
      pending.push_back(proposals.back());
      while (pending.size() > 4 || (pending.size() > 1 && order.chance(0.5))) {
        const size_t index = order.below(pending.size());
        tells.push_back(mixed(pending[index], problem.evaluate(pending[index].genome)));
        first->tell(tells.back());
        pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(index));
      }
    }
    auto resumed = make(GetParam(), problem.space, options);
    for (const Proposal& proposal : proposals) resumed->restore(proposal);
    for (const Told& told : tells) resumed->tell(told);
    for (Algorithm* algorithm : {first.get(), resumed.get()}) {
      for (const Proposal& p : pending) algorithm->tell(mixed(p, problem.evaluate(p.genome)));
    }
    const auto measure = mixed_measure(problem);
    const DriveLog a = drive(*first, measure, {.budget = 1000, .workers = 4});
    const DriveLog b = drive(*resumed, measure, {.budget = 1000, .workers = 4});
    expect_same(a.proposals, b.proposals);
    EXPECT_EQ(proposals.size() + a.proposals.size(), 256u);
  }
}

TEST_P(AlgorithmContract, KnownResultsAreNotProposedAgain) {
  const Space space = space_of({2, 2});
  auto algorithm = make(GetParam(), space);
  algorithm->tell({-1, {0, 0}, Outcome::feasible, {1, 1}, 0});
  algorithm->tell({-1, {1, 1}, Outcome::failed, {}, 0});
  algorithm->tell({-1, {1, 1}, Outcome::feasible, {0, 0}, 0});  // the second tell is ignored
  std::set<Genome> rest;
  while (auto proposal = algorithm->ask()) {
    rest.insert(proposal->genome);
    for (int64_t parent : proposal->parents) EXPECT_EQ(parent, -1);
  }
  EXPECT_EQ(rest, (std::set<Genome>{{0, 1}, {1, 0}}));
}

TEST_P(AlgorithmContract, RefusesGenomesOutsideTheSpace) {
  auto algorithm = make(GetParam(), space_of({2, 2}));
  EXPECT_THROW(algorithm->tell({0, {0, 2}, Outcome::feasible, {}, 0}), std::invalid_argument);
  EXPECT_THROW(algorithm->restore({0, {0}, {}, "random"}), std::invalid_argument);
}

TEST_P(AlgorithmContract, CheckedOptions) {
  const Space space = space_of({2, 2});
  const auto message = [&](const Space& s, const AlgorithmOptions& options) {
    const auto made = make_algorithm(GetParam(), s, options);
    EXPECT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::bad_input);
    return made.error().message;
  };
  EXPECT_THAT(message(Space{}, {}), HasSubstr("no layer groups"));
  EXPECT_THAT(message(space_of({2, 0}), {}), HasSubstr("layer group 1 has no candidate"));
  EXPECT_THAT(message(space, {.population = 1}), HasSubstr("search.population is 1"));
  EXPECT_THAT(message(space, {.initial = {{0, 0}, {0, 2}}}), HasSubstr("initial genome 1"));
}

// 5^30 genomes: nothing may list or allocate by the size of the space.
TEST_P(AlgorithmContract, HugeSpacesAreSearchedOrRefused) {
  const auto problem = random_table(std::vector<int>(30, 5), 0.3, 5);
  const auto made = make_algorithm(GetParam(), problem.space, {.population = 8});
  if (!made.ok()) {
    EXPECT_THAT(made.error().message, HasSubstr("cannot enumerate a space of 9.31e+20 maps"));
    return;
  }
  const DriveLog log = drive(**made, mixed_measure(problem), {.budget = 500, .workers = 8});
  EXPECT_EQ(log.proposals.size(), 500u);
  EXPECT_FALSE(log.duplicates);
  // And a limit that leaves 1 + 30 of them ends cleanly after those.
  auto tight = make(GetParam(), problem.space,
                    {.population = 8, .allowed = [](const Genome& g) { return sum(g) <= 1; }});
  const DriveLog few = drive(*tight, mixed_measure(problem), {.budget = 500, .workers = 8});
  EXPECT_TRUE(few.exhausted);
  EXPECT_EQ(few.proposals.size(), 31u);
}

TEST(AlgorithmRegistry, UnknownNamesGetTheNearest) {
  const auto made = make_algorithm("nsga-2", space_of({2}), {});
  EXPECT_EQ(made.error().code, ErrorCode::not_found);
  EXPECT_THAT(made.error().message, HasSubstr("did you mean \"nsga2\""));
  EXPECT_THAT(made.error().message, HasSubstr("known: nsga2, random, exhaustive"));
}

}  // namespace
}  // namespace kvsweep::search
