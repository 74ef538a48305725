#include "search/algorithms/ask_tell.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace kvsweep::search {
namespace {

constexpr int kDrawBits = 24;  // far more draws than any proposal takes

Told cleaned(const Told& told) {
  Told clean = told;
  if (clean.outcome == Outcome::feasible && !finite(clean.objectives)) {
    clean.outcome = Outcome::failed;
  }
  if (std::isnan(clean.violation)) clean.violation = std::numeric_limits<double>::infinity();
  clean.violation = std::max(clean.violation, 0.0);
  return clean;
}

}  // namespace

AskTell::AskTell(const Space& space, const AlgorithmOptions& options, std::string stream)
    : space_(space), options_(options), stream_(std::move(stream)) {}

std::optional<Proposal> AskTell::ask() {
  Rng rng(options_.seed, stream_, static_cast<uint64_t>(next_number_) << kDrawBits);
  std::optional<Candidate> candidate = next(rng);
  if (!candidate) return std::nullopt;
  if (history_.seen(candidate->genome)) throw std::logic_error("proposed a genome that was seen");
  Proposal proposal{next_number_, std::move(candidate->genome), std::move(candidate->parents),
                    std::move(candidate->origin)};
  record(proposal);
  return proposal;
}

void AskTell::restore(const Proposal& proposal) {
  check_contained(proposal.genome, "restore");
  record(proposal);
}

void AskTell::record(const Proposal& proposal) {
  history_.propose(proposal.genome);
  next_number_ = std::max(next_number_, proposal.number + 1);
  parents_[proposal.number] = proposal.parents;
  proposed(proposal);
}

void AskTell::tell(const Told& told) {
  check_contained(told.genome, "tell");
  if (!history_.tell(told.genome)) return;
  std::vector<int64_t> parents;
  if (auto node = parents_.extract(told.number)) parents = std::move(node.mapped());
  learn(cleaned(told), parents);
}

void AskTell::check_contained(const Genome& genome, const char* where) const {
  if (!space_.contains(genome)) {
    throw std::invalid_argument(std::string(where) + ": genome outside the search space");
  }
}

}  // namespace kvsweep::search
