// Ask/tell: algorithms propose genomes and are told outcomes, in any order (no generation
// barrier). Pure: no I/O, no clock, no threads. Not thread-safe.
//
// Replay. The state of an algorithm is a function of its options, of the proposals made, and of the
// tells in their order; how asks and tells were interleaved does not matter, since proposal n draws
// from its own stretch of random numbers. Hence: same options and same sequence of asks and tells
// => same proposals; and a study is resumed by `restore` of every recorded proposal by number,
// then `tell` of every recorded outcome in the order of the tells, then `ask` as if nothing had
// happened.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "search/pareto/objectives.hpp"
#include "search/space/space.hpp"

namespace kvsweep::search {

// feasible    measured, within the limits
// infeasible  measured, beyond a limit that only measuring could show
// failed      no result: never a parent, stays seen
enum class Outcome { feasible, infeasible, failed };

struct Told {
  int64_t number = 0;  // of the proposal
  Genome genome;
  Outcome outcome = Outcome::feasible;
  Objectives objectives;  // looked at when feasible; a non-finite value counts as failed
  double violation = 0;   // infeasible: sum of relative constraint violations; NaN = infinite
};

struct Proposal {
  int64_t number = 0;  // 0, 1, 2, ... in order of asking
  Genome genome;
  std::vector<int64_t> parents;  // proposal numbers; empty for the initial population
  // "initial" (from the options), "uniform", "random", "crossover", "mutation", "neighbour" (one
  // step from a member of the archive), "enumerated"
  std::string origin;
};

// Exact, known before running: false = never propose. A pure function of the genome. In spaces of
// more than kEnumerable genomes the limit should be closed downwards (what is allowed stays allowed
// when genes fall), as a limit on bytes is: under another limit such a space may be called
// exhausted too early. In smaller spaces exhaustion is exact for every limit.
using HardLimit = std::function<bool(const Genome&)>;

struct AlgorithmOptions {
  int population = 24;
  uint64_t seed = 1;
  HardLimit allowed;            // empty = everything
  std::vector<Genome> initial;  // proposed first, in order; duplicates and disallowed ones skipped
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  // nullopt: nothing is left to propose: every allowed genome is evaluated, failed or pending.
  virtual std::optional<Proposal> ask() = 0;
  // The second tell of a genome is ignored. A genome that was never proposed is taken as a known
  // result: it is seen from now on. Throws std::invalid_argument for a genome outside the space.
  virtual void tell(const Told& told) = 0;
  // Takes over a proposal of an earlier run: seen and pending from now on, no random draw. Numbers
  // continue after the highest one. Throws std::invalid_argument for a genome outside the space.
  virtual void restore(const Proposal& proposal) = 0;
};

// By name of algorithms.def; error (not_found) gives the nearest. bad_input: an empty space, a
// population below 2, an initial genome outside the space, a space that `exhaustive` cannot
// enumerate. Copies space and options.
Result<std::unique_ptr<Algorithm>> make_algorithm(const std::string& name, const Space& space,
                                                  const AlgorithmOptions& options);

struct AlgorithmInfo {
  std::string_view name;
  std::string_view summary;
};
const std::vector<AlgorithmInfo>& algorithms();  // in the order of algorithms.def

}  // namespace kvsweep::search
