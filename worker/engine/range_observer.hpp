// Observes how large keys and values become while a model runs: a model that hands every forward
// pass to another one and looks at what attention is given.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/ranges.hpp"
#include "worker/model/model.hpp"

namespace kvsweep::engine {

// Results of the model it wraps are unchanged, bit for bit. Not thread-safe, as every Model.
class RangeObserver final : public model::Model {
 public:
  explicit RangeObserver(std::unique_ptr<model::Model> model);

  const ModelGeometry& geometry() const override { return model_->geometry(); }
  int64_t vocab_size() const override { return model_->vocab_size(); }
  bool batch_invariant() const override { return model_->batch_invariant(); }
  bool lengths_agree(int64_t a, int64_t b) const override { return model_->lengths_agree(a, b); }
  bool has_key_bias() const override { return model_->has_key_bias(); }
  Status forward(const model::Batch& batch, model::AttentionSink& attention,
                 model::LogitSink& logits) override;

  // Max |x| so far, 0 where nothing came; model_hash is empty.
  const ObservedRanges& ranges() const { return ranges_; }
  std::unique_ptr<model::Model> take_model() { return std::move(model_); }

  // Looks at one layer of one pass.
  void observe(const model::Batch& batch, const model::AttentionCall& call);

 private:
  std::unique_ptr<model::Model> model_;
  ObservedRanges ranges_;
  std::vector<float> row_;
};

}  // namespace kvsweep::engine
