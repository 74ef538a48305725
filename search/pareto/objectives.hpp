// The two objectives of a study and their order.
#pragma once

#include <cmath>

namespace kvsweep::search {

// Both minimised.
struct Objectives {
  double bytes = 0;
  double loss = 0;
  friend bool operator==(const Objectives&, const Objectives&) = default;
};

inline bool finite(const Objectives& f) {
  return std::isfinite(f.bytes) && std::isfinite(f.loss);
}

// Pareto dominance: no worse in both, better in one. Equal vectors do not dominate each other; a
// NaN is neither better nor worse, so callers exclude non-finite vectors first.
// {1, 2} dominates {1, 3}; {1, 3} and {2, 2} are incomparable.
inline bool dominates(const Objectives& a, const Objectives& b) {
  return a.bytes <= b.bytes && a.loss <= b.loss && (a.bytes < b.bytes || a.loss < b.loss);
}

// Total order by bytes, then loss: the order in which the two-objective sweeps run.
inline bool lighter(const Objectives& a, const Objectives& b) {
  return a.bytes != b.bytes ? a.bytes < b.bytes : a.loss < b.loss;
}

}  // namespace kvsweep::search
