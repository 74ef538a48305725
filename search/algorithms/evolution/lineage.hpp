// How many children a proposal has had: at equal rank and crowding the one with fewer goes first,
// which spreads breeding over equally good members (search.md tie rule; arXiv 2412.11931).
#pragma once

#include <cstdint>
#include <unordered_map>

namespace kvsweep::search {

class ChildCount {
 public:
  void add(int64_t parent) { ++counts_[parent]; }
  int of(int64_t parent) const {
    const auto found = counts_.find(parent);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<int64_t, int> counts_;
};

}  // namespace kvsweep::search
