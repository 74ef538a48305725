// The cache layouts of the maps of one run, and which originals they share.
#pragma once

#include <deque>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "worker/engine/job.hpp"

namespace kvsweep::engine {

// A baseline map always runs under the default scheme, so that its numbers do not depend on the
// scheme of the maps it is compared with.
CacheLayout layout_of(const PrecisionMap& map, const ModelGeometry& geometry, BaseType base);

// Jobs point into it: it outlives them.
class Layouts {
 public:
  // The maps must fit the geometry (check_map).
  Layouts(const std::vector<PrecisionMap>& maps, const ModelGeometry& geometry, BaseType base);
  Layouts(const Layouts&) = delete;
  Layouts& operator=(const Layouts&) = delete;

  // `job` under map number `map`, or under the baseline.
  Job under(size_t map, Job job) const;
  Job under_baseline(Job job) const;
  bool is_baseline(size_t map) const { return maps_[map].layout == &layouts_.front(); }

 private:
  struct Choice {
    const CacheLayout* layout = nullptr;
    const CacheLayout* originals = nullptr;  // nullptr: prompts are seen coded
  };
  const CacheLayout* originals_of(const CacheLayout& layout);

  std::deque<CacheLayout> layouts_;            // the first is the baseline's
  std::vector<const CacheLayout*> originals_;  // those that are plain
  std::vector<Choice> maps_;
};

}  // namespace kvsweep::engine
