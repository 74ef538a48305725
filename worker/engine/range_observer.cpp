#include "worker/engine/range_observer.hpp"

#include <algorithm>
#include <cmath>

#include "worker/cache/key_bias.hpp"
#include "worker/codec/hadamard.hpp"

namespace kvsweep::engine {
namespace {

class Watching final : public model::AttentionSink {
 public:
  Watching(RangeObserver& observer, const model::Batch& batch, model::AttentionSink& attention)
      : observer_(observer), batch_(batch), attention_(attention) {}

  Status attend(const model::AttentionCall& call) override {
    observer_.observe(batch_, call);
    return attention_.attend(call);
  }
  bool wants_unbiased_keys(int layer) const override {
    return attention_.wants_unbiased_keys(layer);
  }

 private:
  RangeObserver& observer_;
  const model::Batch& batch_;
  model::AttentionSink& attention_;
};

void raise(float& largest, const std::vector<float>& row) {
  for (const float x : row) largest = std::max(largest, std::fabs(x));
}

// `row` is spent: it is rotated in place.
void raise_both(float& plain, float& rotated, std::vector<float>& row) {
  raise(plain, row);
  codec::hadamard(row.data(), 1, static_cast<int>(row.size()));
  raise(rotated, row);
}

}  // namespace

RangeObserver::RangeObserver(std::unique_ptr<model::Model> model) : model_(std::move(model)) {
  const auto layers = static_cast<size_t>(model_->geometry().num_layers());
  for (auto* list :
       {&ranges_.keys, &ranges_.rotated_keys, &ranges_.values, &ranges_.rotated_values}) {
    list->assign(layers, 0.0f);
  }
  if (!model_->has_key_bias()) return;
  ranges_.unbiased_keys.assign(layers, 0.0f);
  ranges_.rotated_unbiased_keys.assign(layers, 0.0f);
}

Status RangeObserver::forward(const model::Batch& batch, model::AttentionSink& attention,
                              model::LogitSink& logits) {
  Watching watching(*this, batch, attention);
  return model_->forward(batch, watching, logits);
}

// The observed pass is the baseline's, whose keys hold their bias; keys without it are found by
// taking RoPE(b, p) away again.
void RangeObserver::observe(const model::Batch& batch, const model::AttentionCall& call) {
  const auto layer = static_cast<size_t>(call.layer);
  std::vector<float> bias(static_cast<size_t>(call.head_dim));
  for (int64_t at = 0; at < call.rows * call.kv_heads; ++at) {
    const int64_t row = at / call.kv_heads;
    const float* key = call.keys + at * call.head_dim;
    const float* value = call.values + at * call.head_dim;
    row_.assign(value, value + call.head_dim);
    raise_both(ranges_.values[layer], ranges_.rotated_values[layer], row_);
    row_.assign(key, key + call.head_dim);
    raise_both(ranges_.keys[layer], ranges_.rotated_keys[layer], row_);
    if (call.key_bias == nullptr) continue;
    const cache::KeyBias source{call.key_bias + at % call.kv_heads * call.head_dim,
                                call.rotary_channels,
                                call.angles == nullptr ? nullptr : call.angles[row]};
    cache::key_bias_rows(source, {nullptr, call.head_dim, 0, batch.positions[row], 1}, false,
                         bias.data());
    row_.assign(key, key + call.head_dim);
    for (size_t d = 0; d < bias.size(); ++d) row_[d] -= bias[d];
    raise_both(ranges_.unbiased_keys[layer], ranges_.rotated_unbiased_keys[layer], row_);
  }
}

}  // namespace kvsweep::engine
