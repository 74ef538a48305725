// Random search without repetition: the given and the uniform genomes, then uniform unseen ones.
// The baseline every other algorithm is compared with at equal budget (Bergstra and Bengio, JMLR
// 13, 2012).
#include "search/algorithms/ask_tell.hpp"
#include "search/algorithms/initial.hpp"
#include "search/algorithms/sampler.hpp"

namespace kvsweep::search {
namespace {

class RandomSearch final : public AskTell {
 public:
  RandomSearch(const Space& space, const AlgorithmOptions& given)
      : AskTell(space, given, "random"),
        initial_(this->space(), options()),
        sampler_(this->space(), options().allowed, history()) {}

 private:
  std::optional<Candidate> next(Rng& rng) override {
    if (auto entry = initial_.next(options().allowed, history())) {
      return Candidate{std::move(entry->genome), std::move(entry->origin), {}};
    }
    if (auto genome = sampler_.draw(rng)) return Candidate{std::move(*genome), "random", {}};
    return std::nullopt;
  }

  InitialQueue initial_;
  UnseenSampler sampler_;
};

}  // namespace

Result<std::unique_ptr<Algorithm>> make_random(const Space& space,
                                               const AlgorithmOptions& options) {
  return std::unique_ptr<Algorithm>(std::make_unique<RandomSearch>(space, options));
}

}  // namespace kvsweep::search
