#include "worker/engine/batch_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

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
  RowDispatch(const std::vector<Wanted>& wanted, int64_t vocab, const Sequences& sequences,
              JobHandler& handler)
      : wanted_(wanted), vocab_(vocab), sequences_(sequences), handler_(handler) {}

  Status logits(int64_t first, int64_t count, const float* logits) override {
    std::vector<Status> outcomes(static_cast<size_t>(count));
    model::run_tasks(count, [&](int64_t i) {
      const Wanted& row = wanted_[static_cast<size_t>(first + i)];
      outcomes[static_cast<size_t>(i)] = hand_out(row, logits + i * vocab_);
    });
    for (Status& outcome : outcomes) {
      if (!outcome.ok()) return outcome;
    }
    return {};
  }

 private:
  // The last logits of a shared prompt are the first of every job that starts behind it.
  Status hand_out(const Wanted& row, const float* logits) const {
    const Sequence& sequence = sequences_.at(row.sequence);
    if (!sequence.shared) return give(sequence.job, row.position, logits);
    for (const int64_t child : sequence.children) {
      const Sequence& s = sequences_.at(child);
      if (s.shared || !sequences_.wants_logits(s, row.position)) continue;
      KVSWEEP_TRY(give(s.job, row.position, logits));
    }
    return {};
  }

  Status give(int64_t job, int64_t position, const float* logits) const {
    const Status outcome = handler_.row(job, position, logits);
    if (outcome.ok()) return outcome;
    return Error{outcome.error().code,
                 fmt::format("sequence {}, token {}: {}", job, position, outcome.error().message)};
  }

  const std::vector<Wanted>& wanted_;
  int64_t vocab_;
  const Sequences& sequences_;
  JobHandler& handler_;
};

}  // namespace

BatchRunner::BatchRunner(model::Model& model, cache::Pool& pool, RunnerOptions options)
    : model_(model), pool_(pool), options_(std::move(options)) {}

// A job that starts behind its whole prompt has nothing to feed yet, but its first logits.
Status BatchRunner::start(Run& run) {
  const size_t before = run.sequences.running().size();
  KVSWEEP_TRY(run.sequences.start(std::max(1, options_.max_batch)));
  const std::vector<int64_t> running = run.sequences.running();
  for (size_t i = before; i < running.size(); ++i) {
    if (run.sequences.pending(run.sequences.at(running[i])) == 0) advance(run, running[i]);
  }
  return {};
}

// A cache that cannot grow now waits for the others to end.
Status BatchRunner::plan_one(Run& run, int64_t index, int64_t count) {
  const Status begun = run.sequences.at(index).cache->begin_chunk(count);
  if (begun.ok()) {
    planned_.push_back({index, count});
  } else if (begun.error().code == ErrorCode::oom) {
    shortage_ = begun.error();
  } else {
    return begun.error();
  }
  return {};
}

Status BatchRunner::plan(Run& run) {
  planned_.clear();
  shortage_.reset();
  const auto pending = [&](int64_t index) {
    return run.sequences.pending(run.sequences.at(index));
  };
  for (const int64_t index : run.sequences.running()) {
    if (pending(index) == 1) KVSWEEP_TRY(plan_one(run, index, 1));
  }
  int64_t room = options_.prefill_chunk;
  for (const int64_t index : run.sequences.running()) {
    const int64_t left = pending(index);
    if (left == 1 || room == 0) continue;
    const Sequence& sequence = run.sequences.at(index);
    const int64_t prompt = run.jobs[static_cast<size_t>(sequence.job)].prompt_tokens;
    const int64_t count =
        sequence.layout->longest_chunk(sequence.fed, prompt, std::min(left, room));
    KVSWEEP_TRY(plan_one(run, index, count));
    room -= count;
  }
  if (planned_.empty()) return *shortage_;
  return {};
}

void BatchRunner::fill_batch(const Run& run) {
  batch_ = {};
  segments_.clear();
  wanted_.clear();
  for (const Planned& planned : planned_) {
    Sequence& sequence = run.sequences.at(planned.sequence);
    const Job& job = run.jobs[static_cast<size_t>(sequence.job)];
    const int64_t first_row = static_cast<int64_t>(batch_.tokens.size());
    segments_.push_back({&*sequence.cache, sequence.job, first_row, planned.count});
    for (int64_t i = 0; i < planned.count; ++i) {
      const int64_t position = sequence.fed + i;
      batch_.tokens.push_back(job.tokens[static_cast<size_t>(position)]);
      batch_.positions.push_back(static_cast<int32_t>(position));
      batch_.lengths.push_back(static_cast<int32_t>(job.rope_length()));
      if (!run.sequences.wants_logits(sequence, position)) continue;
      batch_.logit_rows.push_back(static_cast<int32_t>(first_row + i));
      wanted_.push_back({planned.sequence, position});
    }
  }
}

Status BatchRunner::forward(Run& run) {
  CacheAttention attention(segments_);
  RowDispatch<WantedRow> rows(wanted_, model_.vocab_size(), run.sequences, run.handler);
  return model_.forward(batch_, attention, rows);
}

void BatchRunner::account(Run& run, double step_ms) const {
  const double row_ms = step_ms / static_cast<double>(batch_.tokens.size());
  for (const Planned& planned : planned_) {
    Sequence& sequence = run.sequences.at(planned.sequence);
    const int64_t prompt = run.jobs[static_cast<size_t>(sequence.job)].prompt_tokens;
    const int64_t prefill = std::clamp<int64_t>(prompt - sequence.fed, 0, planned.count);
    sequence.stats.prefill_ms += row_ms * static_cast<double>(prefill);
    sequence.stats.decode_ms += row_ms * static_cast<double>(planned.count - prefill);
  }
}

void BatchRunner::settle(Run& run) {
  for (const Planned& planned : planned_) {
    Sequence& sequence = run.sequences.at(planned.sequence);
    sequence.fed += planned.count;
    sequence.cache->end_chunk();
    if (run.sequences.pending(sequence) > 0) continue;
    if (sequence.shared) {
      run.sequences.prompt_ready(planned.sequence);
    } else {
      advance(run, planned.sequence);
    }
  }
}

void BatchRunner::advance(Run& run, int64_t index) const {
  Sequence& sequence = run.sequences.at(index);
  if (const std::optional<int32_t> next = run.handler.advance(sequence.job)) {
    run.jobs[static_cast<size_t>(sequence.job)].tokens.push_back(*next);
    return;
  }
  sequence.stats.cache_bytes = sequence.cache->bytes();
  run.handler.finished(sequence.job, sequence.stats);
  run.sequences.end(index);
  ++run.ended;
}

Status BatchRunner::run(std::vector<Job> jobs, JobHandler& handler) {
  const auto agree = [&](int64_t a, int64_t b) { return model_.lengths_agree(a, b); };
  Sequences sequences(jobs, options_.share_prompts, agree, pool_);
  Run run{jobs, handler, sequences};
  while (!sequences.done()) {
    if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::preempted, "the run was cancelled"};
    }
    run.ended = 0;
    batch_ = {};
    KVSWEEP_TRY(start(run));
    if (!sequences.running().empty()) {
      const SteadyClock::time_point start = SteadyClock::now();
      KVSWEEP_TRY(plan(run));
      fill_batch(run);
      KVSWEEP_TRY(forward(run));
      account(run, milliseconds_since(start));
      settle(run);
    }
    if (options_.progress) {
      options_.progress(run.ended, static_cast<int64_t>(batch_.tokens.size()));
    }
  }
  return {};
}

}  // namespace kvsweep::engine
