// What all algorithms share: numbering, history, random numbers per proposal, restore.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "search/algorithms/algorithm.hpp"
#include "search/algorithms/history.hpp"

namespace kvsweep::search {

// A proposal before it is numbered.
struct Candidate {
  Genome genome;
  std::string origin;
  std::vector<int64_t> parents;
};

// Derived classes decide what comes next and what to learn. Proposal n draws from
// Rng(seed, stream) at counter n * 2^24, so its draws do not depend on what was drawn before.
class AskTell : public Algorithm {
 public:
  std::optional<Proposal> ask() final;
  void tell(const Told& told) final;
  void restore(const Proposal& proposal) final;

 protected:
  AskTell(const Space& space, const AlgorithmOptions& options, std::string stream);

  // nullopt = exhausted. The genome must be unseen and allowed.
  virtual std::optional<Candidate> next(Rng& rng) = 0;
  // A proposal is out (asked or restored).
  virtual void proposed(const Proposal& proposal) { (void)proposal; }
  // The first tell of a genome. Never `failed` in disguise: non-finite objectives of a feasible one
  // have become `failed`, a NaN violation infinity. `parents` are those of its proposal.
  virtual void learn(const Told& told, const std::vector<int64_t>& parents) {
    (void)told;
    (void)parents;
  }

  const Space& space() const { return space_; }
  const AlgorithmOptions& options() const { return options_; }
  const History& history() const { return history_; }
  int64_t next_number() const { return next_number_; }

 private:
  void record(const Proposal& proposal);
  void check_contained(const Genome& genome, const char* where) const;

  Space space_;
  AlgorithmOptions options_;
  std::string stream_;
  History history_;
  int64_t next_number_ = 0;
  std::unordered_map<int64_t, std::vector<int64_t>> parents_;  // of pending proposals
};

}  // namespace kvsweep::search
