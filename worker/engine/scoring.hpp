// What is computed from logits: argmax, log-probabilities and their divergence from the baseline's.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/format.hpp"
#include "core/result.hpp"

namespace kvsweep::engine {

struct RowSummary {
  int32_t argmax = 0;  // lowest id on ties
  double log_sum = 0;  // log sum exp: log p(i) = logits[i] - log_sum
};

// logits [vocab]. numerics when one is NaN or infinite.
Result<RowSummary> summarise(const float* logits, int64_t vocab);
// The same without log_sum.
Result<int32_t> argmax(const float* logits, int64_t vocab);

// The baseline's logits at the scored positions of one sequence.
struct BaselineScores {
  BaselineScores(int64_t positions, int64_t vocab_size);
  int64_t bytes() const;

  int64_t vocab = 0;
  std::vector<float> logits;  // [positions, vocab]
  std::vector<RowSummary> rows;
};

// KL(baseline || map) in nats of one position, from both rows of logits. Not below zero.
double kl_divergence(const float* baseline, const RowSummary& baseline_row, const float* map,
                     const RowSummary& map_row, int64_t vocab);

// Baseline scores of recent sequences, so that a unit of many maps computes them once. Not
// thread-safe.
class BaselineCache {
 public:
  explicit BaselineCache(int64_t budget_bytes) : budget_(budget_bytes) {}

  // What identifies a sequence's scores: its tokens, where scoring starts, and the base type.
  static std::string key(const std::vector<int32_t>& tokens, int64_t first_position, BaseType base);

  std::shared_ptr<const BaselineScores> find(const std::string& key);  // nullptr when absent
  // Drops the least recently used entries above the budget; an entry larger than that is not kept.
  void put(const std::string& key, std::shared_ptr<const BaselineScores> scores);

  int64_t budget_bytes() const { return budget_; }
  int64_t used_bytes() const { return used_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const BaselineScores> scores;
  };
  int64_t budget_;
  int64_t used_ = 0;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace kvsweep::engine
