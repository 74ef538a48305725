#include "search/algorithms/initial.hpp"

#include <gtest/gtest.h>

#include "tests/search/support/problems.hpp"

namespace kvsweep::search {
namespace {

using Genomes = std::vector<Genome>;

Pair pair(const char* name) {
  return pair_from(name).value();
}

TEST(UniformGenomes, OnePerSharedCandidate) {
  EXPECT_EQ(uniform_genomes(testing::space_of({3, 3})), (Genomes{{0, 0}, {1, 1}, {2, 2}}));
}

// Group 0 offers K2V2 K4V4 K8V8, group 1 only K4V4 K8V8 K16V16. K2V2 is first of three, so group 1
// takes its first; K4V4 and K8V8 are shared, at different indices; K16V16 is last of three.
TEST(UniformGenomes, GroupsWithoutThePairTakeTheSamePlace) {
  Space space;
  space.groups.push_back({{0}, {pair("K2V2"), pair("K4V4"), pair("K8V8")}});
  space.groups.push_back({{1}, {pair("K4V4"), pair("K8V8"), pair("K16V16")}});
  EXPECT_EQ(uniform_genomes(space), (Genomes{{0, 0}, {1, 0}, {2, 1}, {2, 2}}));
  space.groups[1].candidates = {pair("K16V16")};
  EXPECT_EQ(uniform_genomes(space), (Genomes{{0, 0}, {1, 0}, {2, 0}, {0, 0}}));
}

TEST(InitialQueue, GivenGenomesFirstThenUniformOnesWithoutSeenOrDisallowed) {
  const Space space = testing::space_of({3, 3});
  AlgorithmOptions options;
  options.initial = {{2, 0}, {1, 1}, {2, 0}, {0, 2}};
  options.allowed = [](const Genome& g) { return g != Genome{2, 2}; };
  InitialQueue queue(space, options);
  History history;
  history.propose({0, 2});
  std::vector<std::string> origins;
  Genomes genomes;
  while (auto entry = queue.next(options.allowed, history)) {
    history.propose(entry->genome);
    genomes.push_back(entry->genome);
    origins.push_back(entry->origin);
  }
  EXPECT_EQ(genomes, (Genomes{{2, 0}, {1, 1}, {0, 0}}));
  EXPECT_EQ(origins, (std::vector<std::string>{"initial", "initial", "uniform"}));
}

}  // namespace
}  // namespace kvsweep::search
