#include "worker/engine/batch_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/text.hpp"
#include "worker/model/parallel.hpp"

namespace kvsweep::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

double milliseconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

// Hands the rows of one block of logits to the handler, in parallel.
template <typename Wanted>
class RowDispatch final : public model::LogitSink {
 public:
  RowDispatch(const std::vector<Wanted>& wanted, int64_t vocab, JobHandler& handler)
      : wanted_(wanted), vocab_(vocab), handler_(handler) {}

  Status logits(int64_t first, int64_t count, const float* logits) override {
    std::vector<Status> outcomes(static_cast<size_t>(count));
    model::run_tasks(count, [&](int64_t i) {
      const Wanted& row = wanted_[static_cast<size_t>(first + i)];
      outcomes[static_cast<size_t>(i)] = handler_.row(row.job, row.position, logits + i * vocab_);
    });
    for (int64_t i = 0; i < count; ++i) {
      const Status& outcome = outcomes[static_cast<size_t>(i)];
      if (outcome.ok()) continue;
      const Wanted& row = wanted_[static_cast<size_t>(first + i)];
      return Error{outcome.error().code, fmt::format("sequence {}, token {}: {}", row.job,
                                                     row.position, outcome.error().message)};
    }
    return {};
  }

 private:
  const std::vector<Wanted>& wanted_;
  int64_t vocab_;
  JobHandler& handler_;
};

}  // namespace

BatchRunner::BatchRunner(model::Model& model, const CacheLayout& layout, cache::Pool& pool,
                         RunnerOptions options)
    : model_(model), layout_(layout), pool_(pool), options_(std::move(options)) {}

Status BatchRunner::admit(const std::vector<Job>& jobs) {
  while (next_job_ < jobs.size() && static_cast<int>(active_.size()) < options_.max_batch) {
    const Job& job = jobs[next_job_];
    const int64_t bytes = layout_.allocated_bytes(job.most_tokens, job.prompt_tokens);
    if (bytes > pool_.budget_bytes()) {
      return Error{ErrorCode::oom,
                   fmt::format("sequence {} needs {} of KV cache for {} tokens, more than the "
                               "budget of {}; raise the cache budget or shorten the sequence",
                               next_job_, human_bytes(static_cast<double>(bytes)), job.most_tokens,
                               human_bytes(static_cast<double>(pool_.budget_bytes())))};
    }
    if (reserved_bytes_ + bytes > pool_.budget_bytes()) return {};
    reserved_bytes_ += bytes;
    active_.emplace_back(static_cast<int64_t>(next_job_), bytes,
                         cache::KvCache(layout_, job.prompt_tokens, pool_));
    ++next_job_;
  }
  return {};
}

// A cache that cannot grow now waits for the others to end.
Status BatchRunner::plan_one(Active& active, int64_t count) {
  const Status begun = active.cache.begin_chunk(count);
  if (begun.ok()) {
    planned_.push_back({&active, count});
  } else if (begun.error().code == ErrorCode::oom) {
    shortage_ = begun.error();
  } else {
    return begun.error();
  }
  return {};
}

Status BatchRunner::plan(const std::vector<Job>& jobs) {
  planned_.clear();
  shortage_.reset();
  const auto pending = [&](const Active& active) {
    return static_cast<int64_t>(jobs[static_cast<size_t>(active.job)].tokens.size()) - active.fed;
  };
  for (Active& active : active_) {
    if (pending(active) == 1) KVSWEEP_TRY(plan_one(active, 1));
  }
  int64_t room = options_.prefill_chunk;
  for (Active& active : active_) {
    const int64_t left = pending(active);
    if (left == 1 || room == 0) continue;
    const int64_t prompt = jobs[static_cast<size_t>(active.job)].prompt_tokens;
    const int64_t count = layout_.longest_chunk(active.fed, prompt, std::min(left, room));
    KVSWEEP_TRY(plan_one(active, count));
    room -= count;
  }
  if (planned_.empty()) return *shortage_;
  return {};
}

void BatchRunner::fill_batch(const std::vector<Job>& jobs) {
  batch_ = {};
  segments_.clear();
  wanted_.clear();
  for (const Planned& planned : planned_) {
    Active& active = *planned.active;
    const Job& job = jobs[static_cast<size_t>(active.job)];
    const int64_t first_row = static_cast<int64_t>(batch_.tokens.size());
    const int64_t length = job.length > 0 ? job.length : job.most_tokens;
    segments_.push_back({&active.cache, active.job, first_row, planned.count});
    for (int64_t i = 0; i < planned.count; ++i) {
      const int64_t position = active.fed + i;
      batch_.tokens.push_back(job.tokens[static_cast<size_t>(position)]);
      batch_.positions.push_back(static_cast<int32_t>(position));
      batch_.lengths.push_back(static_cast<int32_t>(length));
      if (position < job.first_logit) continue;
      batch_.logit_rows.push_back(static_cast<int32_t>(first_row + i));
      wanted_.push_back({active.job, position});
    }
  }
}

Status BatchRunner::forward(JobHandler& handler) {
  CacheAttention attention(segments_);
  RowDispatch<WantedRow> rows(wanted_, model_.vocab_size(), handler);
  return model_.forward(batch_, attention, rows);
}

void BatchRunner::account(const std::vector<Job>& jobs, double step_ms) {
  const double row_ms = step_ms / static_cast<double>(batch_.tokens.size());
  for (const Planned& planned : planned_) {
    Active& active = *planned.active;
    const int64_t prompt = jobs[static_cast<size_t>(active.job)].prompt_tokens;
    const int64_t prefill = std::clamp<int64_t>(prompt - active.fed, 0, planned.count);
    active.stats.prefill_ms += row_ms * static_cast<double>(prefill);
    active.stats.decode_ms += row_ms * static_cast<double>(planned.count - prefill);
  }
}

// Returns how many jobs ended with this step.
int64_t BatchRunner::settle(std::vector<Job>& jobs, JobHandler& handler) {
  for (const Planned& planned : planned_) {
    planned.active->fed += planned.count;
    planned.active->cache.end_chunk();
  }
  int64_t ended = 0;
  for (auto at = active_.begin(); at != active_.end();) {
    Job& job = jobs[static_cast<size_t>(at->job)];
    if (at->fed < static_cast<int64_t>(job.tokens.size())) {
      ++at;
      continue;
    }
    if (const std::optional<int32_t> next = handler.advance(at->job)) {
      job.tokens.push_back(*next);
      ++at;
      continue;
    }
    at->stats.cache_bytes = at->cache.bytes();
    handler.finished(at->job, at->stats);
    reserved_bytes_ -= at->reserved_bytes;
    at = active_.erase(at);
    ++ended;
  }
  return ended;
}

Status BatchRunner::run(std::vector<Job> jobs, JobHandler& handler) {
  active_.clear();
  reserved_bytes_ = 0;
  next_job_ = 0;
  while (next_job_ < jobs.size() || !active_.empty()) {
    if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::preempted, "the run was cancelled"};
    }
    KVSWEEP_TRY(admit(jobs));
    const SteadyClock::time_point start = SteadyClock::now();
    KVSWEEP_TRY(plan(jobs));
    fill_batch(jobs);
    KVSWEEP_TRY(forward(handler));
    account(jobs, milliseconds_since(start));
    const int64_t ended = settle(jobs, handler);
    if (options_.progress) options_.progress(ended, static_cast<int64_t>(batch_.tokens.size()));
  }
  return {};
}

}  // namespace kvsweep::engine
