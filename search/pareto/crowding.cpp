#include "search/pareto/crowding.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace kvsweep::search {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The front in order of bytes, with distances kept up to date while points are removed. Positions
// are into `order_`; `distance_` runs beside it.
class CrowdedFront {
 public:
  CrowdedFront(std::span<const Objectives> front, const Preferred& preferred)
      : front_(front), preferred_(preferred), order_(front.size()), distance_(front.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      return front_[a] == front_[b] ? preferred_(a, b) : lighter(front_[a], front_[b]);
    });
    if (order_.empty()) return;
    const Objectives& first = front_[order_.front()];
    const Objectives& last = front_[order_.back()];
    bytes_range_ = last.bytes - first.bytes;
    loss_range_ = first.loss - last.loss;
    for (size_t i = 0; i < order_.size(); ++i) update(i);
  }

  size_t size() const { return order_.size(); }

  void remove_most_crowded() {
    size_t worst = 0;
    for (size_t i = 1; i < order_.size(); ++i) {
      const bool tie = distance_[i] == distance_[worst];
      if (tie ? preferred_(order_[worst], order_[i]) : distance_[i] < distance_[worst]) worst = i;
    }
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(worst));
    distance_.erase(distance_.begin() + static_cast<std::ptrdiff_t>(worst));
    if (worst > 0) update(worst - 1);
    if (worst < order_.size()) update(worst);
  }

  ThinnedFront result() const {
    std::vector<size_t> positions(order_.size());
    std::iota(positions.begin(), positions.end(), size_t{0});
    std::sort(positions.begin(), positions.end(),
              [&](size_t a, size_t b) { return order_[a] < order_[b]; });
    ThinnedFront thinned;
    for (size_t position : positions) {
      thinned.kept.push_back(order_[position]);
      thinned.crowding.push_back(distance_[position]);
    }
    return thinned;
  }

 private:
  void update(size_t i) {
    const bool lightest = i == 0;
    const bool heaviest = i + 1 == order_.size() && front_[order_[i]] != front_[order_[0]];
    if (lightest || heaviest) {
      distance_[i] = kInfinite;
      return;
    }
    const Objectives& before = front_[order_[i - 1]];
    // The last copy of the only vector of a front has no neighbour on its right: distance 0.
    const Objectives& after = front_[order_[std::min(i + 1, order_.size() - 1)]];
    distance_[i] = share(after.bytes - before.bytes, bytes_range_) +
                   share(before.loss - after.loss, loss_range_);
  }

  static double share(double gap, double range) { return range > 0 ? gap / range : 0; }

  std::span<const Objectives> front_;
  const Preferred& preferred_;
  std::vector<int> order_;
  std::vector<double> distance_;
  double bytes_range_ = 0;
  double loss_range_ = 0;
};

}  // namespace

ThinnedFront thin_front(std::span<const Objectives> front, int keep, const Preferred& preferred) {
  CrowdedFront crowded(front, preferred);
  while (crowded.size() > static_cast<size_t>(std::max(keep, 0))) crowded.remove_most_crowded();
  return crowded.result();
}

}  // namespace kvsweep::search
