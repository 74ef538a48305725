// Ask/tell: algorithms propose genomes and are told outcomes, in any order (no generation
// barrier). Pure: same seed and same sequence of asks and tells => same proposals. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "search/space/space.hpp"

namespace kvsweep::search {

// Both minimised.
struct Objectives {
  double bytes = 0;
  double loss = 0;
};

enum class Outcome { feasible, infeasible, failed };

struct Told {
  int64_t number = 0;  // of the proposal
  Genome genome;
  Outcome outcome = Outcome::feasible;
  Objectives objectives;   // not looked at when failed
  double violation = 0;    // > 0 when infeasible: sum of constraint violations, each relative
};

struct Proposal {
  int64_t number = 0;             // 0, 1, 2, ... in order of asking
  Genome genome;
  std::vector<int64_t> parents;   // proposal numbers; empty for the initial population
  std::string origin;             // "uniform", "random", "crossover", "mutation", "neighbour"
};

// Exact, known before running: false = never propose.
using HardLimit = std::function<bool(const Genome&)>;

struct AlgorithmOptions {
  int population = 24;
  uint64_t seed = 1;
  HardLimit allowed;              // empty = everything
  std::vector<Genome> initial;    // proposed first, in order, duplicates skipped
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  // nullopt: the space is exhausted (every allowed genome is evaluated, failed or pending).
  virtual std::optional<Proposal> ask() = 0;
  virtual void tell(const Told& told) = 0;
};

// By name of algorithms.def; error gives the nearest.
Result<std::unique_ptr<Algorithm>> make_algorithm(const std::string& name, const Space& space,
                                                  const AlgorithmOptions& options);

struct AlgorithmInfo {
  std::string_view name;
  std::string_view summary;
};
const std::vector<AlgorithmInfo>& algorithms();

}  // namespace kvsweep::search
