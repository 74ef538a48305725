// NSGA-II for integer genomes, steady state and asynchronous.
//
// Paper: Deb, Pratap, Agarwal, Meyarivan, "A fast and elitist multiobjective genetic algorithm:
// NSGA-II", IEEE Trans. Evol. Comput. 6(2), 2002; steady state: Durillo, Nebro, Luna, Alba, PPSN
// 2008. One ask breeds one child from the members told so far, one tell inserts one member and
// removes the worst: O(N log N) for a population of N, plus O(A) for an archive of A vectors.
//
// Deviations, each for expensive evaluations on a discrete space:
// - Nothing is proposed twice in the history of the search. When the child is seen: mutate again a
//   bounded number of times, then an unseen neighbour of the archive, then any unseen genome, then
//   "exhausted".
// - Crowding is recomputed after every removal; ties are decided by children and genome.
// - With duplicates refused, a front genome lost by truncation could never come back. So each tell
//   also offers the population one vector of the archive that it lacks, in turn.
// - A child beyond the hard limit is lowered until allowed, not dropped.
//
// Worked example, population 2, two binary genes: the uniform genomes {0,0} and {1,1} come first.
// Told (2,4) and (4,2), both of rank 0, they breed {0,1} by crossover; told (3,3) it is the most
// crowded of three (the others are boundary points) and leaves the population, but stays in the
// archive. {1,0} comes next, then nullopt: all four are seen.
#include "search/algorithms/ask_tell.hpp"
#include "search/algorithms/evolution/crossover.hpp"
#include "search/algorithms/evolution/lineage.hpp"
#include "search/algorithms/evolution/mutation.hpp"
#include "search/algorithms/evolution/neighbour.hpp"
#include "search/algorithms/evolution/population.hpp"
#include "search/algorithms/evolution/tournament.hpp"
#include "search/algorithms/initial.hpp"
#include "search/algorithms/sampler.hpp"

namespace kvsweep::search {
namespace {

constexpr double kCrossover = 0.9;  // probability that a child has two parents
constexpr double kSwap = 0.5;       // per gene
constexpr double kStep = 0.7;       // one step up or down, else uniform redraw
constexpr int kMutations = 16;      // attempts to make a child new

class Nsga2 final : public AskTell {
 public:
  Nsga2(const Space& space, const AlgorithmOptions& given)
      : AskTell(space, given, "nsga2"),
        initial_(this->space(), options()),
        sampler_(this->space(), options().allowed, history()),
        population_(options().population) {}

 private:
  std::optional<Candidate> next(Rng& rng) override {
    if (auto entry = initial_.next(options().allowed, history())) {
      return Candidate{std::move(entry->genome), std::move(entry->origin), {}};
    }
    const bool filling = next_number() < options().population;
    if (!filling && !population_.members().empty()) {
      if (auto child = breed(rng)) return child;
      if (auto found =
              unseen_neighbour(space(), population_.archive(), history(), options().allowed, rng)) {
        return Candidate{std::move(found->genome), "neighbour", {found->parent}};
      }
    }
    if (auto genome = sampler_.draw(rng)) return Candidate{std::move(*genome), "random", {}};
    return std::nullopt;
  }

  std::optional<Candidate> breed(Rng& rng) {
    const std::vector<Member>& members = population_.members();
    const size_t mother = *tournament(members, asked_children_, std::nullopt, rng);
    Candidate child{members[mother].genome, "mutation", {members[mother].number}};
    const auto father = tournament(members, asked_children_, mother, rng);
    if (father && rng.chance(kCrossover)) {
      child.genome = uniform_crossover(child.genome, members[*father].genome, kSwap, rng);
      child.origin = "crossover";
      child.parents.push_back(members[*father].number);
    }
    const Genome bred = child.genome;
    child.genome = mutated(space(), bred, kStep, rng);
    for (int i = 0; i < kMutations; ++i) {
      const bool allowed = lower_until_allowed(options().allowed, child.genome, rng);
      if (allowed && !history().seen(child.genome)) return child;
      child.genome = mutated_for_certain(space(), bred, kStep, rng);
    }
    return std::nullopt;
  }

  void proposed(const Proposal& proposal) override {
    for (int64_t parent : proposal.parents) asked_children_.add(parent);
  }

  void learn(const Told& told, const std::vector<int64_t>& parents) override {
    population_.tell(told, parents);
  }

  InitialQueue initial_;
  UnseenSampler sampler_;
  Population population_;
  ChildCount
      asked_children_;  // of all proposals made, so that breeding spreads over parents at once
};

}  // namespace

Result<std::unique_ptr<Algorithm>> make_nsga2(const Space& space, const AlgorithmOptions& options) {
  return std::unique_ptr<Algorithm>(std::make_unique<Nsga2>(space, options));
}

}  // namespace kvsweep::search
