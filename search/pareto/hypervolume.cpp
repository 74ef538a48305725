#include "search/pareto/hypervolume.hpp"

#include <algorithm>
#include <vector>

namespace kvsweep::search {

double hypervolume(std::span<const Objectives> points, const Objectives& reference) {
  std::vector<Objectives> inside;
  for (const Objectives& f : points) {
    if (finite(f) && f.bytes < reference.bytes && f.loss < reference.loss) inside.push_back(f);
  }
  std::sort(inside.begin(), inside.end(), lighter);
  double area = 0;
  double ceiling = reference.loss;  // lowest loss so far
  for (const Objectives& f : inside) {
    if (f.loss >= ceiling) continue;
    area += (reference.bytes - f.bytes) * (ceiling - f.loss);
    ceiling = f.loss;
  }
  return area;
}

double hypervolume_share(std::span<const Objectives> points, const Objectives& reference) {
  const double box = reference.bytes * reference.loss;
  if (!(reference.bytes > 0) || !(reference.loss > 0) || !std::isfinite(box)) return 0;
  std::vector<Objectives> clamped;
  clamped.reserve(points.size());
  for (const Objectives& f : points) {
    if (finite(f)) clamped.push_back({std::max(f.bytes, 0.0), std::max(f.loss, 0.0)});
  }
  return hypervolume(clamped, reference) / box;
}

}  // namespace kvsweep::search
