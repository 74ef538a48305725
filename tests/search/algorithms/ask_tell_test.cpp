// What a derived algorithm is told.
#include "search/algorithms/ask_tell.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/search/support/problems.hpp"

namespace kvsweep::search {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Proposes {0}, {1}, {2}, ... with the parents 10 n and 10 n + 1, and records what it learns.
class Recorder final : public AskTell {
 public:
  Recorder() : AskTell(testing::space_of({8}), {.seed = 3}, "recorder") {}
  std::vector<Told> learnt;
  std::vector<std::vector<int64_t>> parents;
  std::vector<int64_t> out;
  std::vector<uint64_t> draws;

 private:
  std::optional<Candidate> next(Rng& rng) override {
    draws.push_back(rng.next());
    const int64_t n = next_number();
    if (n == 8) return std::nullopt;
    return Candidate{{static_cast<int>(n)}, "test", {10 * n, 10 * n + 1}};
  }
  void proposed(const Proposal& proposal) override { out.push_back(proposal.number); }
  void learn(const Told& told, const std::vector<int64_t>& from) override {
    learnt.push_back(told);
    parents.push_back(from);
  }
};

using Parents = std::vector<std::vector<int64_t>>;

TEST(AskTell, LearnsEachGenomeOnceWithTheParentsOfItsProposal) {
  Recorder recorder;
  for (int i = 0; i < 3; ++i) recorder.ask();
  recorder.restore({5, {5}, {50, 51}, "test"});
  EXPECT_EQ(recorder.out, (std::vector<int64_t>{0, 1, 2, 5}));
  for (int64_t number : {5, 1, 5, 1}) {
    recorder.tell({number, {static_cast<int>(number)}, Outcome::feasible, {1, 1}, 0});
  }
  recorder.tell({-1, {7}, Outcome::feasible, {1, 1}, 0});  // known from elsewhere
  EXPECT_EQ(recorder.parents, (Parents{{50, 51}, {10, 11}, {}}));
  EXPECT_EQ(recorder.ask()->number, 6);  // after the highest
}

TEST(AskTell, NotANumberIsAFailureOrAnInfiniteViolation) {
  Recorder recorder;
  recorder.tell({0, {0}, Outcome::feasible, {1, kNan}, 0});
  recorder.tell({1, {1}, Outcome::feasible, {kInf, 1}, 0});
  recorder.tell({2, {2}, Outcome::infeasible, {kNan, kNan}, kNan});
  recorder.tell({3, {3}, Outcome::infeasible, {}, -4});
  EXPECT_EQ(recorder.learnt[0].outcome, Outcome::failed);
  EXPECT_EQ(recorder.learnt[1].outcome, Outcome::failed);
  EXPECT_EQ(recorder.learnt[2].outcome, Outcome::infeasible);
  EXPECT_EQ(recorder.learnt[2].violation, kInf);
  EXPECT_EQ(recorder.learnt[3].violation, 0);
}

// Draws belong to the number of the proposal, not to what was drawn before.
TEST(AskTell, ProposalNumbersFixTheDraws) {
  Recorder asked;
  for (int i = 0; i < 5; ++i) asked.ask();
  Recorder restored;
  restored.restore({3, {3}, {}, "test"});
  restored.ask();
  EXPECT_EQ(restored.draws.back(), asked.draws[4]);
  EXPECT_NE(asked.draws[3], asked.draws[4]);
}

}  // namespace
}  // namespace kvsweep::search
