#include "worker/cache/layer_side.hpp"

#include <algorithm>

namespace kvsweep::cache {

LayerSide::LayerSide(const std::vector<SideLayout>& runs, BaseType base, int64_t exact_tokens,
                     SideName name) {
  sides_.reserve(runs.size());
  for (const SideLayout& run : runs) {
    run_of_.insert(run_of_.end(), static_cast<size_t>(run.kv_heads),
                   static_cast<uint16_t>(sides_.size()));
    sides_.emplace_back(run, base, exact_tokens, name);
  }
}

// The rows of the run's heads, side by side.
const float* LayerSide::rows_of(const SideLayout& run, const float* rows, int64_t tokens,
                                std::vector<float>* own) const {
  if (sides_.size() == 1) return rows;
  const auto layer_floats = static_cast<int64_t>(run_of_.size()) * run.head_dim;
  const int64_t run_floats = int64_t{run.kv_heads} * run.head_dim;
  own->resize(static_cast<size_t>(tokens * run_floats));
  const float* from = rows + int64_t{run.first_head} * run.head_dim;
  for (int64_t t = 0; t < tokens; ++t) {
    std::copy_n(from + t * layer_floats, run_floats, own->data() + t * run_floats);
  }
  return own->data();
}

Status LayerSide::append(const float* rows, int64_t tokens, LayerWork* work) {
  if (work->runs.size() < sides_.size()) work->runs.resize(sides_.size());
  for (size_t i = 0; i < sides_.size(); ++i) {
    const float* own = rows_of(sides_[i].layout(), rows, tokens, &work->rows);
    KVSWEEP_TRY(sides_[i].append(own, tokens, &work->runs[i]));
  }
  return {};
}

void LayerSide::end_chunk(LayerWork* work) {
  for (size_t i = 0; i < sides_.size(); ++i) sides_[i].end_chunk(&work->runs[i]);
}

void LayerSide::keep(int64_t tokens) {
  for (Side& side : sides_) side.keep(tokens);
}

}  // namespace kvsweep::cache
