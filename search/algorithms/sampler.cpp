#include "search/algorithms/sampler.hpp"

#include <algorithm>
#include <bit>

#include "search/space/enumeration.hpp"

namespace kvsweep::search {
namespace {

constexpr int kUniformDraws = 64;
constexpr int kLoweredDraws = 32;

}  // namespace

Genome uniform_genome(const Space& space, Rng& rng) {
  Genome genome;
  genome.reserve(space.groups.size());
  for (const Group& group : space.groups) {
    genome.push_back(static_cast<int>(rng.below(group.candidates.size())));
  }
  return genome;
}

bool lower_until_allowed(const HardLimit& limit, Genome& genome, Rng& rng) {
  while (!is_allowed(limit, genome)) {
    std::vector<size_t> movable;
    for (size_t i = 0; i < genome.size(); ++i) {
      if (genome[i] > 0) movable.push_back(i);
    }
    if (movable.empty()) return false;
    --genome[movable[rng.below(movable.size())]];
  }
  return true;
}

UnseenPool::UnseenPool(const Space& space, const HardLimit& limit) : space_(space) {
  const auto size = static_cast<int64_t>(space.size());
  for (int64_t rank = 0; rank < size; ++rank) {
    if (is_allowed(limit, genome_at(space, rank))) ranks_.push_back(static_cast<int32_t>(rank));
  }
  unseen_ = static_cast<int64_t>(ranks_.size());
  present_.assign(ranks_.size(), true);
  counts_.assign(ranks_.size() + 1, 0);
  // All ones: node i covers the lowest set bit of i.
  for (size_t i = 1; i < counts_.size(); ++i) counts_[i] = static_cast<int32_t>(i & -i);
}

void UnseenPool::remove(const Genome& genome) {
  const auto rank = static_cast<int32_t>(rank_of(space_, genome));
  const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end() || *found != rank) return;
  const auto index = static_cast<size_t>(found - ranks_.begin());
  if (!present_[index]) return;
  present_[index] = false;
  --unseen_;
  for (size_t i = index + 1; i < counts_.size(); i += i & -i) --counts_[i];
}

std::optional<Genome> UnseenPool::draw(Rng& rng) const {
  if (unseen_ == 0) return std::nullopt;
  auto before = static_cast<int32_t>(rng.below(static_cast<uint64_t>(unseen_)));
  size_t position = 0;  // the longest prefix with at most `before` unseen genomes
  for (size_t step = std::bit_floor(counts_.size() - 1); step > 0; step /= 2) {
    const size_t next = position + step;
    if (next < counts_.size() && counts_[next] <= before) {
      position = next;
      before -= counts_[next];
    }
  }
  return genome_at(space_, ranks_[position]);
}

UnseenSampler::UnseenSampler(const Space& space, const HardLimit& limit, const History& history)
    : space_(space), limit_(limit), history_(history) {}

bool UnseenSampler::fresh(const Genome& genome) const {
  return !history_.seen(genome) && is_allowed(limit_, genome);
}

std::optional<Genome> UnseenSampler::draw(Rng& rng) {
  for (int i = 0; i < kUniformDraws; ++i) {
    Genome genome = uniform_genome(space_, rng);
    if (fresh(genome)) return genome;
  }
  if (enumerable(space_)) return draw_from_pool(rng);
  if (auto genome = draw_lowered(rng)) return genome;
  return beside_seen(rng);
}

std::optional<Genome> UnseenSampler::draw_from_pool(Rng& rng) {
  if (!pool_) pool_.emplace(space_, limit_);
  for (; removed_ < history_.order().size(); ++removed_) pool_->remove(history_.order()[removed_]);
  return pool_->draw(rng);
}

std::optional<Genome> UnseenSampler::draw_lowered(Rng& rng) const {
  for (int i = 0; i < kLoweredDraws; ++i) {
    Genome genome = uniform_genome(space_, rng);
    if (lower_until_allowed(limit_, genome, rng) && !history_.seen(genome)) return genome;
  }
  return std::nullopt;
}

std::optional<Genome> UnseenSampler::beside_seen(Rng& rng) const {
  Genome lightest(space_.groups.size(), 0);
  if (fresh(lightest)) return lightest;
  const std::vector<Genome>& seen = history_.order();
  if (seen.empty()) return std::nullopt;
  const size_t first = rng.below(seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    Genome genome = seen[(first + i) % seen.size()];
    for (size_t gene = 0; gene < genome.size(); ++gene) {
      const int original = genome[gene];
      const int levels = static_cast<int>(space_.groups[gene].candidates.size());
      for (genome[gene] = 0; genome[gene] < levels; ++genome[gene]) {
        if (fresh(genome)) return genome;
      }
      genome[gene] = original;
    }
  }
  return std::nullopt;
}

}  // namespace kvsweep::search
