#include "worker/engine/layouts.hpp"

#include <utility>

namespace kvsweep::engine {
namespace {

Job placed(Job job, const CacheLayout* layout, const CacheLayout* originals) {
  job.layout = layout;
  job.originals = originals;
  return job;
}

// Whether it is what plain_layout makes of `layout`.
bool holds_originals(const CacheLayout& plain, const CacheLayout& layout) {
  if (plain.page_tokens != layout.page_tokens || plain.sinks != layout.sinks) return false;
  for (size_t i = 0; i < layout.keys.size(); ++i) {
    const bool unbiased = layout.keys[i].front().format.unbiased;
    if (plain.keys[i].front().format.unbiased != unbiased) return false;
  }
  return true;
}

}  // namespace

CacheLayout layout_of(const PrecisionMap& map, const ModelGeometry& geometry, BaseType base) {
  PrecisionMap used = map;
  if (map.is_baseline()) used.scheme = {};
  return cache_layout(used, geometry, base);
}

Layouts::Layouts(const std::vector<PrecisionMap>& maps, const ModelGeometry& geometry,
                 BaseType base) {
  layouts_.push_back(layout_of(baseline_map({}, geometry.num_layers()), geometry, base));
  originals_.push_back(&layouts_.front());
  for (const PrecisionMap& map : maps) {
    if (map.is_baseline()) {
      maps_.push_back({&layouts_.front(), &layouts_.front()});
      continue;
    }
    const CacheLayout& layout = layouts_.emplace_back(layout_of(map, geometry, base));
    maps_.push_back({&layout, nullptr});
    if (layout.prefill == Prefill::exact) maps_.back().originals = originals_of(layout);
  }
}

const CacheLayout* Layouts::originals_of(const CacheLayout& layout) {
  for (const CacheLayout* plain : originals_) {
    if (holds_originals(*plain, layout)) return plain;
  }
  originals_.push_back(&layouts_.emplace_back(plain_layout(layout)));
  return originals_.back();
}

Job Layouts::under(size_t map, Job job) const {
  return placed(std::move(job), maps_[map].layout, maps_[map].originals);
}

Job Layouts::under_baseline(Job job) const {
  return placed(std::move(job), &layouts_.front(), &layouts_.front());
}

}  // namespace kvsweep::engine
