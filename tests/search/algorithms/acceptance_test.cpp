// Acceptance problems: fronts known by theory or by enumeration. Coverage is by what was told,
// which the archive holds, with duplicate removal on; 20 seeds each.
#include <gtest/gtest.h>

#include "search/pareto/archive.hpp"
#include "search/pareto/hypervolume.hpp"
#include "tests/search/support/drive.hpp"

namespace kvsweep::search {
namespace {

using testing::drive;
using testing::DriveOptions;
using testing::Front;
using testing::make;
using testing::Problem;

constexpr int kSeeds = 20;

struct Gate {
  const char* name;
  Problem problem;
  int population;
  int64_t budget;  // the gate: the whole front on every seed within this many evaluations
  int64_t median;  // against regressions: about twice what was measured when this was written
};

void PrintTo(const Gate& gate, std::ostream* out) {
  *out << gate.name;
}

class AcceptanceGate : public ::testing::TestWithParam<std::tuple<Gate, int>> {};

TEST_P(AcceptanceGate, CoversTheFrontOnEverySeed) {
  const auto& [gate, workers] = GetParam();
  std::vector<int64_t> needed;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    auto algorithm = make("nsga2", gate.problem.space,
                          {.population = gate.population, .seed = static_cast<uint64_t>(seed)});
    needed.push_back(testing::tells_to_cover(
        *algorithm, gate.problem,
        {.budget = gate.budget, .workers = workers, .order_seed = static_cast<uint64_t>(seed)}));
    EXPECT_LE(needed.back(), gate.budget) << "seed " << seed;
  }
  std::sort(needed.begin(), needed.end());
  RecordProperty("median", static_cast<int>(needed[kSeeds / 2]));
  RecordProperty("worst", static_cast<int>(needed.back()));
  EXPECT_LE(needed[kSeeds / 2], gate.median);
}

INSTANTIATE_TEST_SUITE_P(
    Problems, AcceptanceGate,
    ::testing::Combine(::testing::Values(Gate{"OneMinMax", testing::one_min_max(20), 42, 20000,
                                              700},
                                         Gate{"LOTZ", testing::lotz(20), 42, 60000, 4000},
                                         Gate{"COCZ", testing::cocz(20), 22, 10000, 1500}),
                       ::testing::Values(1, 8, 64)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) + "With" +
             std::to_string(std::get<1>(info.param)) + "Workers";
    });

// The population is smaller than the front (21): the archive, its neighbours and re-admission must
// still complete it, where classic NSGA-II stalls.
TEST(Acceptance, APopulationSmallerThanTheFrontStillCoversIt) {
  const Problem problem = testing::lotz(20);
  for (int seed = 1; seed <= kSeeds; ++seed) {
    auto algorithm =
        make("nsga2", problem.space, {.population = 12, .seed = static_cast<uint64_t>(seed)});
    EXPECT_LE(testing::tells_to_cover(*algorithm, problem, {.budget = 60000, .workers = 8}), 60000);
  }
}

// ZDT5, reference (32, 22): 601.455 is the hypervolume of the deceptive front, 641.728 the optimum.
TEST(Acceptance, Zdt5BeatsTheDeceptiveFront) {
  const Problem problem = testing::zdt5();
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    auto algorithm = make("nsga2", problem.space, {.population = 62, .seed = seed});
    Archive archive;
    DriveOptions options{.budget = 20000, .workers = 8, .order_seed = seed};
    options.stop = [&](const Told& told) {
      archive.insert(told.objectives, {told.number, told.genome});
      return false;
    };
    drive(*algorithm, testing::feasible(problem.evaluate), options);
    const double volume = hypervolume(archive.front(), {32, 22});
    EXPECT_GE(volume, 601.5) << "seed " << seed;
    EXPECT_LE(volume, 641.7285);
  }
}

// Random tables of up to 5^5 entries, with and without interactions: when the search has been
// through half of the space it has the exact front; the truth comes from enumeration and the
// definition.
TEST(Acceptance, RandomTablesGetTheirExactFront) {
  const std::vector<std::vector<int>> shapes = {{5, 5, 5, 5, 5}, {6, 5, 5, 5}, {3, 4, 5, 2, 5}};
  for (const auto& shape : shapes) {
    for (double interaction : {0.0, 0.3}) {
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        Problem problem = testing::random_table(shape, interaction, seed);
        std::vector<Objectives> all;
        for (const Genome& genome : testing::all_genomes(problem.space)) {
          all.push_back(problem.evaluate(genome));
        }
        problem.front = testing::front_by_definition(all);
        const auto budget = static_cast<int64_t>(all.size() / 2);
        auto algorithm = make("nsga2", problem.space, {.seed = seed});
        const int64_t needed =
            testing::tells_to_cover(*algorithm, problem, {.budget = budget, .workers = 8});
        EXPECT_LE(needed, budget) << shape.size() << " groups, interaction " << interaction
                                  << ", seed " << seed << ", front " << problem.front.size();
      }
    }
  }
}

TEST(Acceptance, ExhaustiveFindsTheExactFront) {
  Problem problem = testing::random_table({5, 5, 5, 5}, 0.5, 9);
  std::vector<Objectives> all;
  for (const Genome& genome : testing::all_genomes(problem.space)) {
    all.push_back(problem.evaluate(genome));
  }
  problem.front = testing::front_by_definition(all);
  auto algorithm = make("exhaustive", problem.space);
  EXPECT_LE(testing::tells_to_cover(*algorithm, problem, {.budget = 625, .workers = 8}), 625);
}

// On a space too large to exhaust, equal budgets, the median hypervolume of NSGA-II over seeds must
// beat that of random search: if it does not, selection is broken.
TEST(Acceptance, BeatsRandomSearch) {
  const Problem problem = testing::random_table(std::vector<int>(8, 5), 0.3, 10);
  const Objectives reference{problem.evaluate(Genome(8, 4)).bytes * 1.01,
                             problem.evaluate(Genome(8, 0)).loss * 1.01};
  const auto volumes = [&](const std::string& name) {
    std::vector<double> result;
    for (uint64_t seed = 1; seed <= 11; ++seed) {
      auto algorithm = make(name, problem.space, {.seed = seed});
      std::vector<Objectives> points;
      for (const Told& told :
           drive(*algorithm, testing::feasible(problem.evaluate), {.budget = 300, .workers = 8})
               .tells) {
        points.push_back(told.objectives);
      }
      result.push_back(hypervolume(points, reference));
    }
    std::sort(result.begin(), result.end());
    return result;
  };
  const std::vector<double> nsga2 = volumes("nsga2");
  const std::vector<double> random = volumes("random");
  EXPECT_GT(nsga2.front(), random.back());  // the worst seed beats the best
}

}  // namespace
}  // namespace kvsweep::search
