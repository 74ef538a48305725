#include "search/pareto/nondominated_sort.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace kvsweep::search {
namespace {

bool dominates_any(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) throw std::invalid_argument("points of different lengths");
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

}  // namespace

Fronts nondominated_fronts(std::span<const Objectives> points) {
  std::vector<int> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return lighter(points[a], points[b]); });
  Fronts fronts;
  std::vector<Objectives> tails;  // last point of each front: the lowest loss on it
  for (int index : order) {
    // Whoever came before is no heavier, so a front dominates the point if and only if its tail
    // does; and if front k does not, no later one does: the predicate is monotone.
    const auto place = std::partition_point(tails.begin(), tails.end(), [&](const Objectives& t) {
      return dominates(t, points[index]);
    });
    const auto front = static_cast<size_t>(place - tails.begin());
    if (front == fronts.size()) {
      fronts.emplace_back();
      tails.push_back(points[index]);
    }
    fronts[front].push_back(index);
    tails[front] = points[index];
  }
  for (std::vector<int>& front : fronts) std::sort(front.begin(), front.end());
  return fronts;
}

Fronts nondominated_fronts(std::span<const std::vector<double>> points) {
  const int n = static_cast<int>(points.size());
  std::vector<std::vector<int>> dominated(n);
  std::vector<int> dominators(n, 0);
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) {
      if (dominates_any(points[i], points[j])) {
        dominated[i].push_back(j);
        ++dominators[j];
      } else if (dominates_any(points[j], points[i])) {
        dominated[j].push_back(i);
        ++dominators[i];
      }
    }
  }
  Fronts fronts;
  std::vector<int> current;
  for (int i = 0; i < n; ++i) {
    if (dominators[i] == 0) current.push_back(i);
  }
  while (!current.empty()) {
    std::vector<int> next;
    for (int i : current) {
      for (int j : dominated[i]) {
        if (--dominators[j] == 0) next.push_back(j);
      }
    }
    std::sort(next.begin(), next.end());
    fronts.push_back(std::move(current));
    current = std::move(next);
  }
  return fronts;
}

}  // namespace kvsweep::search
