// What the engine does with logits: choose the next token, or score a reference.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/engine/batch_runner.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/scoring.hpp"

namespace kvsweep::engine {

// One request on its way: `index` in the caller's list, `output` filled at the end.
struct Ticket {
  int64_t index = 0;
  const SequenceRequest* request = nullptr;
  SequenceOutput* output = nullptr;
};

// Greedy decoding until an end-of-sequence id, max_new_tokens or the stop check. Whatever order
// rows come in, tokens are chosen one after the other.
class GenerateHandler final : public JobHandler {
 public:
  GenerateHandler(const std::vector<Ticket>& tickets, const RunOptions& options, int64_t vocab);

  static Job job(const SequenceRequest& request, const RunOptions& options);

  Status row(int64_t job, int64_t position, const float* logits) override;
  std::optional<int32_t> advance(int64_t job) override;
  void finished(int64_t job, const JobStats& stats) override;

 private:
  const std::vector<Ticket>& tickets_;
  const RunOptions& options_;
  int64_t vocab_;
  std::vector<std::vector<int32_t>> choices_;  // by job, then by output token
};

// Scores every reference token against the baseline's logits at the same position.
class ForcedHandler final : public JobHandler {
 public:
  struct Sources {
    // nullptr: the run is the baseline's own, which agrees with itself, or is not compared.
    std::shared_ptr<const BaselineScores> baseline;
    // Where to keep this run's logits; nullptr: nowhere.
    std::shared_ptr<BaselineScores> keep;
  };
  // `sources[i]` belongs to `tickets[i]`.
  ForcedHandler(const std::vector<Ticket>& tickets, const std::vector<Sources>& sources,
                int64_t vocab);

  static Job job(const SequenceRequest& request);

  Status row(int64_t job, int64_t position, const float* logits) override;
  std::optional<int32_t> advance(int64_t job) override;
  void finished(int64_t job, const JobStats& stats) override;

 private:
  struct Scores {
    std::vector<double> kl;
    std::vector<double> nll;
    std::vector<int32_t> argmax;
    std::vector<uint8_t> agrees;
  };
  const std::vector<Ticket>& tickets_;
  const std::vector<Sources>& sources_;
  int64_t vocab_;
  std::vector<Scores> scores_;
};

// Keeps all logits of one job.
class CaptureHandler final : public JobHandler {
 public:
  CaptureHandler(int64_t positions, int64_t vocab);
  Status row(int64_t job, int64_t position, const float* logits) override;
  std::optional<int32_t> advance(int64_t) override { return std::nullopt; }
  void finished(int64_t, const JobStats&) override {}
  std::vector<float> take() { return std::move(logits_); }

 private:
  int64_t vocab_;
  std::vector<float> logits_;  // [positions, vocab]
};

}  // namespace kvsweep::engine
