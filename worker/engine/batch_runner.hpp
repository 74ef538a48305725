// Continuous batching: runs any number of jobs (sequences to be fed) through one model under one
// cache layout, as many at once as fit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "core/result.hpp"
#include "core/scheme.hpp"
#include "worker/cache/kv_cache.hpp"
#include "worker/engine/cache_attention.hpp"
#include "worker/model/model.hpp"

namespace kvsweep::engine {

struct Job {
  std::vector<int32_t> tokens;  // to feed; the handler may extend them (JobHandler::advance)
  int64_t prompt_tokens = 0;    // the first tokens, which are the prompt for the scheme's view
  int64_t first_logit = 0;      // position from which logits are wanted
  int64_t most_tokens = 0;      // tokens it may be fed in the end: what its cache must hold
  int64_t length = 0;           // tokens as the request allows, for model::Batch; 0: most_tokens
};

struct JobStats {
  int64_t cache_bytes = 0;  // allocated at its end
  // Its share, by rows, of the wall time of the steps it took part in.
  double prefill_ms = 0;
  double decode_ms = 0;
};

class JobHandler {
 public:
  virtual ~JobHandler() = default;
  // One row of logits [vocab]. Rows of one step arrive from several threads; never twice.
  virtual Status row(int64_t job, int64_t position, const float* logits) = 0;
  // All tokens of the job are fed: the next one, or nothing when the job is finished.
  virtual std::optional<int32_t> advance(int64_t job) = 0;
  virtual void finished(int64_t job, const JobStats& stats) = 0;
};

struct RunnerOptions {
  int max_batch = 16;
  int64_t prefill_chunk = 256;  // rows of one step, beside those of sequences that decode
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t finished, int64_t tokens)> progress;  // increments; may be empty
};

class BatchRunner {
 public:
  // Everything passed by reference outlives the runner.
  BatchRunner(model::Model& model, const CacheLayout& layout, const Scheme& scheme,
              cache::Pool& pool, RunnerOptions options);

  // Jobs start in order. Each step feeds one token of every decoding job and up to prefill_chunk
  // tokens of the others, in one forward pass. A job is admitted when the pool can hold
  // most_tokens of it beside what the running jobs may still take, so none is ever evicted.
  // Errors: oom (names the job that cannot fit alone), numerics, preempted.
  Status run(std::vector<Job> jobs, JobHandler& handler);

 private:
  struct Active {
    Active(int64_t job_index, int64_t bytes, cache::KvCache kv)
        : job(job_index), reserved_bytes(bytes), cache(std::move(kv)) {}
    int64_t job;
    int64_t reserved_bytes;
    int64_t fed = 0;
    cache::KvCache cache;
    JobStats stats;
  };
  struct Planned {
    Active* active = nullptr;
    int64_t count = 0;
  };
  struct WantedRow {
    int64_t job = 0;
    int64_t position = 0;
  };

  Status admit(const std::vector<Job>& jobs);
  Status plan(const std::vector<Job>& jobs);
  Status plan_one(Active& active, int64_t count);
  void fill_batch(const std::vector<Job>& jobs);
  Status forward(JobHandler& handler);
  void account(const std::vector<Job>& jobs, double step_ms);
  int64_t settle(std::vector<Job>& jobs, JobHandler& handler);

  model::Model& model_;
  const CacheLayout& layout_;
  const Scheme& scheme_;
  cache::Pool& pool_;
  RunnerOptions options_;

  std::list<Active> active_;
  int64_t reserved_bytes_ = 0;
  size_t next_job_ = 0;
  // The step being made.
  std::vector<Planned> planned_;
  std::optional<Error> shortage_;  // the last begin_chunk that failed
  model::Batch batch_;
  std::vector<Segment> segments_;
  std::vector<WantedRow> wanted_;
};

}  // namespace kvsweep::engine
