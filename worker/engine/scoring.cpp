#include "worker/engine/scoring.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/model/rows.hpp"

namespace kvsweep::engine {
namespace {

Result<int32_t> first_largest(const float* logits, int64_t vocab, float* largest) {
  *largest = model::max_or_nan(logits, vocab);
  if (!std::isfinite(*largest)) {
    return Error{ErrorCode::numerics, "the logits hold NaN or infinity"};
  }
  return static_cast<int32_t>(std::find(logits, logits + vocab, *largest) - logits);
}

}  // namespace

Result<int32_t> argmax(const float* logits, int64_t vocab) {
  float largest = 0;
  return first_largest(logits, vocab, &largest);
}

Result<RowSummary> summarise(const float* logits, int64_t vocab) {
  float largest = 0;
  RowSummary row;
  KVSWEEP_ASSIGN(row.argmax, first_largest(logits, vocab, &largest));
  row.log_sum = static_cast<double>(largest) + std::log(model::sum_exp(logits, largest, vocab));
  return row;
}

BaselineScores::BaselineScores(int64_t positions, int64_t vocab_size)
    : vocab(vocab_size),
      logits(static_cast<size_t>(positions * vocab_size)),
      rows(static_cast<size_t>(positions)) {}

int64_t BaselineScores::bytes() const {
  return static_cast<int64_t>(logits.size() * sizeof(float) + rows.size() * sizeof(RowSummary));
}

double kl_divergence(const float* baseline, const RowSummary& baseline_row, const float* map,
                     const RowSummary& map_row, int64_t vocab) {
  return std::max(0.0,
                  model::divergence(baseline, baseline_row.log_sum, map, map_row.log_sum, vocab));
}

std::string BaselineCache::key(const std::vector<int32_t>& tokens, int64_t first_position,
                               BaseType base) {
  std::string key(tokens.size() * sizeof(int32_t), '\0');
  if (!tokens.empty()) std::memcpy(key.data(), tokens.data(), key.size());
  return key + "@" + std::to_string(first_position) + "/" + std::string(to_string(base));
}

std::shared_ptr<const BaselineScores> BaselineCache::find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->scores;
}

void BaselineCache::put(const std::string& key, std::shared_ptr<const BaselineScores> scores) {
  if (scores->bytes() > budget_ || by_key_.count(key) != 0) return;
  used_ += scores->bytes();
  entries_.push_front({key, std::move(scores)});
  by_key_[key] = entries_.begin();
  while (used_ > budget_) {
    used_ -= entries_.back().scores->bytes();
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace kvsweep::engine
