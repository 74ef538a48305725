// Problems with known fronts, as spaces whose pairs mean nothing: only the genes count. Everything
// is minimised, so "maximise x" appears as -x.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "search/algorithms/algorithm.hpp"

namespace kvsweep::search::testing {

// One group per entry, with that many candidates (1..16).
inline Space space_of(const std::vector<int>& levels) {
  std::vector<Pair> pairs;
  for (Codec k : {Codec::int2, Codec::int4, Codec::int8, Codec::base}) {
    for (Codec v : {Codec::int2, Codec::int4, Codec::int8, Codec::base}) pairs.push_back({k, v});
  }
  Space space;
  for (size_t i = 0; i < levels.size(); ++i) {
    space.groups.push_back({{static_cast<int>(i)}, {pairs.begin(), pairs.begin() + levels[i]}});
  }
  return space;
}

inline Space bits(int n) {
  return space_of(std::vector<int>(n, 2));
}

using Evaluate = std::function<Objectives(const Genome&)>;
using Front = std::set<std::pair<double, double>>;

struct Problem {
  Space space;
  Evaluate evaluate;
  Front front;  // every non-dominated objective vector
};

inline double ones(const Genome& x, size_t begin, size_t end) {
  return static_cast<double>(std::count(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                        x.begin() + static_cast<std::ptrdiff_t>(end), 1));
}

// (ones, zeros); every point is optimal.
inline Problem one_min_max(int n) {
  Problem problem{bits(n), {}, {}};
  problem.evaluate = [](const Genome& x) {
    const double count = ones(x, 0, x.size());
    return Objectives{-count, count - static_cast<double>(x.size())};
  };
  for (int i = 0; i <= n; ++i) problem.front.insert({-i, i - n});
  return problem;
}

// (leading ones, trailing zeros); each front point is the single genome 1^i 0^(n-i).
inline Problem lotz(int n) {
  Problem problem{bits(n), {}, {}};
  problem.evaluate = [](const Genome& x) {
    const auto leading = std::find(x.begin(), x.end(), 0) - x.begin();
    const auto trailing = std::find(x.rbegin(), x.rend(), 1) - x.rbegin();
    return Objectives{-static_cast<double>(leading), -static_cast<double>(trailing)};
  };
  for (int i = 0; i <= n; ++i) problem.front.insert({-i, i - n});
  return problem;
}

// (ones, ones in the first half + zeros in the second); optimal when the first half is all ones.
inline Problem cocz(int n) {
  Problem problem{bits(n), {}, {}};
  problem.evaluate = [](const Genome& x) {
    const size_t half = x.size() / 2;
    const double first = ones(x, 0, half);
    const double second = ones(x, half, x.size());
    return Objectives{-(first + second), -(first + static_cast<double>(half) - second)};
  };
  for (int k = 0; k <= n / 2; ++k) problem.front.insert({-(n / 2 + k), -(n - k)});
  return problem;
}

// ZDT5 (Zitzler, Deb, Thiele, Evol. Comput. 8(2), 2000): f1 = 1 + ones of 30 bits, f2 = g / f1, g
// the sum over ten 5-bit blocks of 2 + ones, or 1 when all five are set. Front: g = 10.
inline Problem zdt5() {
  Problem problem{bits(80), {}, {}};
  problem.evaluate = [](const Genome& x) {
    const double f1 = 1 + ones(x, 0, 30);
    double g = 0;
    for (size_t block = 0; block < 10; ++block) {
      const double count = ones(x, 30 + 5 * block, 35 + 5 * block);
      g += count == 5 ? 1 : 2 + count;
    }
    return Objectives{f1, g / f1};
  };
  for (int f1 = 1; f1 <= 31; ++f1) problem.front.insert({f1, 10.0 / f1});
  return problem;
}

// A precision-like table: bytes add up over the groups; loss adds up per gene (usually, not always,
// falling with bytes) plus `interaction` times a random term per pair of neighbouring groups and
// their values.
inline Problem random_table(const std::vector<int>& levels, double interaction, uint64_t seed) {
  Problem problem{space_of(levels), {}, {}};
  Rng rng(seed, "random_table");
  std::vector<std::vector<double>> loss;
  std::vector<std::vector<double>> joint;
  std::vector<int> weights;
  for (size_t i = 0; i < levels.size(); ++i) {
    weights.push_back(static_cast<int>(rng.between(1, 4)));
    const double scale = rng.uniform();
    loss.emplace_back();
    for (int v = 0; v < levels[i]; ++v) {
      loss.back().push_back(scale * (levels[i] - 1 - v) + 0.4 * scale * rng.uniform());
    }
    joint.emplace_back();
    for (int v = 0; v < 16 * 16; ++v) joint.back().push_back(rng.uniform());
  }
  problem.evaluate = [=](const Genome& x) {
    Objectives f;
    for (size_t i = 0; i < x.size(); ++i) {
      f.bytes += weights[i] * (x[i] + 1);
      f.loss += loss[i][x[i]];
      if (i > 0) f.loss += interaction * joint[i][x[i - 1] * 16 + x[i]];
    }
    return f;
  };
  return problem;
}

// All genomes of a small space, by an odometer.
inline std::vector<Genome> all_genomes(const Space& space) {
  std::vector<Genome> genomes{{}};
  for (const Group& group : space.groups) {
    std::vector<Genome> longer;
    for (const Genome& genome : genomes) {
      for (size_t v = 0; v < group.candidates.size(); ++v) {
        longer.push_back(genome);
        longer.back().push_back(static_cast<int>(v));
      }
    }
    genomes = std::move(longer);
  }
  return genomes;
}

// Non-dominated vectors by definition: O(n^2) over distinct vectors.
inline Front front_by_definition(const std::vector<Objectives>& points) {
  std::set<std::pair<double, double>> distinct;
  for (const Objectives& f : points) distinct.insert({f.bytes, f.loss});
  Front front;
  for (const auto& a : distinct) {
    const bool beaten = std::any_of(distinct.begin(), distinct.end(), [&](const auto& b) {
      return b != a && b.first <= a.first && b.second <= a.second;
    });
    if (!beaten) front.insert(a);
  }
  return front;
}

}  // namespace kvsweep::search::testing
