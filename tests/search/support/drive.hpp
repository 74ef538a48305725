// Runs an algorithm against simulated workers: up to `workers` proposals are out at once and come
// back in random order.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "core/rng.hpp"
#include "search/algorithms/algorithm.hpp"
#include "search/algorithms/history.hpp"
#include "tests/search/support/problems.hpp"

namespace kvsweep::search::testing {

struct DriveOptions {
  int64_t budget = 1000;  // asks
  int workers = 1;
  uint64_t order_seed = 1;
  std::function<bool(const Told&)> stop;  // true after a tell = enough
};

struct DriveLog {
  std::vector<Proposal> proposals;
  std::vector<Told> tells;
  bool exhausted = false;
  bool duplicates = false;
};

using Measure = std::function<Told(const Proposal&)>;

inline Measure feasible(const Evaluate& evaluate) {
  return [evaluate](const Proposal& p) {
    return Told{p.number, p.genome, Outcome::feasible, evaluate(p.genome), 0};
  };
}

inline DriveLog drive(Algorithm& algorithm, const Measure& measure, const DriveOptions& options) {
  DriveLog log;
  Rng order(options.order_seed, "completion order");
  std::unordered_set<Genome, GenomeHash> distinct;
  std::vector<Proposal> pending;
  while (true) {
    while (!log.exhausted && static_cast<int64_t>(log.proposals.size()) < options.budget &&
           static_cast<int>(pending.size()) < options.workers) {
      std::optional<Proposal> proposal = algorithm.ask();
      if (!proposal) {
        log.exhausted = true;
        break;
      }
      log.duplicates = log.duplicates || !distinct.insert(proposal->genome).second;
      log.proposals.push_back(*proposal);
      pending.push_back(std::move(*proposal));
    }
    if (pending.empty()) return log;
    const size_t index = order.below(pending.size());
    log.tells.push_back(measure(pending[index]));
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(index));
    algorithm.tell(log.tells.back());
    if (options.stop && options.stop(log.tells.back())) return log;
  }
}

// Tells until every vector of the problem's front was met; `budget` + 1 when some are missing.
inline int64_t tells_to_cover(Algorithm& algorithm, const Problem& problem,
                              const DriveOptions& options) {
  Front missing = problem.front;
  DriveOptions until_covered = options;
  until_covered.stop = [&](const Told& told) {
    missing.erase({told.objectives.bytes, told.objectives.loss});
    return missing.empty();
  };
  const DriveLog log = drive(algorithm, feasible(problem.evaluate), until_covered);
  return missing.empty() ? static_cast<int64_t>(log.tells.size()) : options.budget + 1;
}

inline std::unique_ptr<Algorithm> make(const std::string& name, const Space& space,
                                       const AlgorithmOptions& options = {}) {
  return make_algorithm(name, space, options).value();
}

}  // namespace kvsweep::search::testing
