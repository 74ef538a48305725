// Continuous batching: runs any number of jobs (sequences to be fed, under any maps) through one
// model, as many at once as fit, and what several begin with once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "worker/cache/pool.hpp"
#include "worker/engine/cache_attention.hpp"
#include "worker/engine/drafter.hpp"
#include "worker/engine/job.hpp"
#include "worker/engine/sequences.hpp"
#include "worker/model/model.hpp"

namespace kvsweep::engine {

struct RunnerOptions {
  int max_batch = 16;
  int64_t prefill_chunk = 256;  // rows of one step, beside those of sequences that decode
  bool share_prompts = true;    // equal prompts, and what prompts begin with, are computed once
  std::optional<int64_t> draft_tokens;  // verified at once, whatever it costs; not set: what pays
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t finished, int64_t tokens)> progress;  // increments; may be empty
};

class BatchRunner {
 public:
  // Everything passed by reference outlives the runner.
  BatchRunner(model::Model& model, cache::Pool& pool, RunnerOptions options);

  // Each step feeds one token of every decoding sequence, tokens of its draft behind it where that
  // pays (Drafter), and up to prefill_chunk tokens of the others, in one forward pass. A sequence
  // starts when the pool can hold it to its end beside those that run (Sequences). Sharing changes
  // no result: where the model is batch-invariant, not by one bit. Drafts are used only there.
  // Errors: oom (names the job that cannot fit alone), numerics, preempted.
  Status run(std::vector<Job> jobs, JobHandler& handler);

 private:
  struct Planned {
    int64_t sequence = 0;
    int64_t count = 0;               // tokens, those of the draft included
    std::span<const int32_t> draft;  // the last of them
    int64_t known() const { return count - static_cast<int64_t>(draft.size()); }
  };
  struct WantedRow {
    int64_t sequence = 0;
    int64_t position = 0;
  };
  // One call of run.
  struct Run {
    std::vector<Job>& jobs;
    JobHandler& handler;
    Sequences& sequences;
    Drafter drafter;
    int64_t ended = 0;   // jobs, in this step
    int64_t tokens = 0;  // that were fed and stay, in this step
  };

  Status start(Run& run);
  Status step(Run& run);
  Status plan(Run& run, bool drafts);
  Status plan_decoding(Run& run, bool drafts);
  Status plan_one(Run& run, int64_t index, int64_t count, std::span<const int32_t> draft);
  Status plan_others(Run& run);
  void fill_batch(const Run& run);
  Status forward(Run& run);
  void undo(Run& run);
  void account(Run& run, double step_ms) const;
  void settle(Run& run);
  void settle_one(Run& run, const Planned& planned);
  std::optional<int32_t> choose(Run& run, Sequence& sequence) const;
  void finish(Run& run, int64_t index) const;

  model::Model& model_;
  cache::Pool& pool_;
  RunnerOptions options_;
  // The step being made.
  std::vector<Planned> planned_;
  bool held_ = false;              // some have a draft, so that the step may be undone
  std::optional<Error> shortage_;  // the last begin_chunk that failed
  model::Batch batch_;
  std::vector<Segment> segments_;
  std::vector<WantedRow> wanted_;
};

}  // namespace kvsweep::engine
