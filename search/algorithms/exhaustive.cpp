// Exhaustive search: the given genomes, then every other one in genome order (rank 0 is the
// lightest of all). The truth other algorithms are tested against, and the best choice when the
// budget covers the space. Memory O(seen): the space itself is never listed.
#include <cstdio>

#include "search/algorithms/ask_tell.hpp"
#include "search/algorithms/sampler.hpp"
#include "search/space/enumeration.hpp"

namespace kvsweep::search {
namespace {

class Exhaustive final : public AskTell {
 public:
  Exhaustive(const Space& space, const AlgorithmOptions& options)
      : AskTell(space, options, "exhaustive"), size_(static_cast<int64_t>(space.size())) {}

 private:
  std::optional<Candidate> next(Rng&) override {
    for (; given_ < options().initial.size(); ++given_) {
      const Genome& genome = options().initial[given_];
      if (fresh(genome)) return Candidate{genome, "initial", {}};
    }
    for (; rank_ < size_; ++rank_) {
      Genome genome = genome_at(space(), rank_);
      if (fresh(genome)) return Candidate{std::move(genome), "enumerated", {}};
    }
    return std::nullopt;
  }

  bool fresh(const Genome& genome) const {
    return !history().seen(genome) && is_allowed(options().allowed, genome);
  }

  int64_t size_;
  size_t given_ = 0;
  int64_t rank_ = 0;  // everything below is seen or not allowed
};

}  // namespace

Result<std::unique_ptr<Algorithm>> make_exhaustive(const Space& space,
                                                   const AlgorithmOptions& options) {
  if (!enumerable(space)) {
    char size[32];
    std::snprintf(size, sizeof size, "%.3g", space.size());
    return bad_input("search.algorithm exhaustive cannot enumerate a space of " +
                     std::string(size) + " maps (at most " + std::to_string(kEnumerable) +
                     "); use nsga2, fewer groups or fewer candidates");
  }
  return std::unique_ptr<Algorithm>(std::make_unique<Exhaustive>(space, options));
}

}  // namespace kvsweep::search
