// The working set of a steady-state search, and the archive beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "search/algorithms/algorithm.hpp"
#include "search/algorithms/evolution/lineage.hpp"
#include "search/algorithms/evolution/member.hpp"
#include "search/pareto/archive.hpp"

namespace kvsweep::search {

// A function of the tells and their order alone: of the children only those of told proposals count
// in ties, whatever is pending (see "Replay" in algorithm.hpp). Not thread-safe.
class Population {
 public:
  explicit Population(int capacity) : capacity_(capacity) {}

  // Takes in one result and truncates to the capacity. A failed one only counts for its parents.
  // Since a genome is never proposed twice, one lost by truncation could not come back; so each
  // call also offers one vector of the archive that no member has, in turn by bytes.
  // O(N log N + A) for N members and A vectors in the archive.
  void tell(const Told& told, const std::vector<int64_t>& parents);

  // In order of rank, with rank and crowding set.
  const std::vector<Member>& members() const { return members_; }
  const Archive& archive() const { return archive_; }

 private:
  void readmit_one();

  int capacity_;
  std::vector<Member> members_;
  Archive archive_;
  ChildCount children_;
  double readmitted_bytes_ = 0;
};

}  // namespace kvsweep::search
