// Archive: every non-dominated objective vector met so far, with up to eight genomes each. The
// answer of a search is its archive; the population is only its working set.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "search/pareto/objectives.hpp"
#include "search/space/space.hpp"

namespace kvsweep::search {

struct ArchivedGenome {
  int64_t number = 0;  // of the proposal
  Genome genome;
};

struct ArchivedVector {
  Objectives objectives;
  std::vector<ArchivedGenome> genomes;  // in order of arrival, all different
};

// A staircase ordered by bytes, so an insertion costs O(log n) plus what it removes.
//
// At most kGenomesPerVector genomes are kept for one vector: on a problem where every genome is
// optimal (OneMinMax) an unlimited archive would hold the whole space. The first eight stay.
//
// Example: insert (2,2), (1,3), (3,3), (2,1): the third is dominated and ignored, the fourth
// removes the first; the archive is (1,3), (2,1). Not thread-safe.
class Archive {
 public:
  static constexpr size_t kGenomesPerVector = 8;

  // True when the genome is in the archive afterwards. A non-finite vector never is.
  bool insert(const Objectives& objectives, const ArchivedGenome& genome);

  // By bytes, ascending.
  const std::map<double, ArchivedVector>& vectors() const { return by_bytes_; }
  std::vector<Objectives> front() const;
  bool empty() const { return by_bytes_.empty(); }

 private:
  std::map<double, ArchivedVector> by_bytes_;  // loss strictly falls as bytes rise
};

}  // namespace kvsweep::search
