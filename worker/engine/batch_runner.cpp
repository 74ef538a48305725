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
    Sequence& sequence = run.sequences.at(running[i]);
    if (run.sequences.pending(sequence) > 0) continue;
    if (!choose(run, sequence)) finish(run, running[i]);
  }
  return {};
}

// A cache that cannot grow now waits for the others to end.
Status BatchRunner::plan_one(Run& run, int64_t index, int64_t count,
                             std::span<const int32_t> draft) {
  const int64_t all = count + static_cast<int64_t>(draft.size());
  const Status begun = run.sequences.at(index).cache->begin_chunk(all, held_);
  if (begun.ok()) {
    planned_.push_back({index, all, draft});
  } else if (begun.error().code == ErrorCode::oom) {
    if (!draft.empty()) return plan_one(run, index, count, {});
    shortage_ = begun.error();
  } else {
    return begun.error();
  }
  return {};
}

Status BatchRunner::plan_decoding(Run& run, bool drafts) {
  std::vector<int64_t> decoding;
  std::vector<Drafter::Question> questions;
  for (const int64_t index : run.sequences.running()) {
    const Sequence& sequence = run.sequences.at(index);
    if (run.sequences.pending(sequence) != 1) continue;
    const int64_t most = run.jobs[static_cast<size_t>(sequence.job)].most_tokens;
    const bool may = drafts && !sequence.shared;
    decoding.push_back(index);
    questions.push_back({sequence.job, may ? most - sequence.fed - 1 : 0});
  }
  const auto verify = run.drafter.plan(questions, drafts ? options_.prefill_chunk : 0);
  held_ = std::any_of(verify.begin(), verify.end(), [](const auto& d) { return !d.empty(); });
  for (size_t i = 0; i < decoding.size(); ++i) {
    KVSWEEP_TRY(plan_one(run, decoding[i], 1, verify[i]));
  }
  return {};
}

Status BatchRunner::plan_others(Run& run) {
  int64_t room = options_.prefill_chunk;
  for (const int64_t index : run.sequences.running()) {
    const Sequence& sequence = run.sequences.at(index);
    const int64_t left = run.sequences.pending(sequence);
    if (left == 1 || room == 0) continue;
    const int64_t prompt = run.jobs[static_cast<size_t>(sequence.job)].prompt_tokens;
    const int64_t count =
        sequence.layout->longest_chunk(sequence.fed, prompt, std::min(left, room));
    KVSWEEP_TRY(plan_one(run, index, count, {}));
    room -= count;
  }
  return {};
}

Status BatchRunner::plan(Run& run, bool drafts) {
  planned_.clear();
  shortage_.reset();
  KVSWEEP_TRY(plan_decoding(run, drafts));
  KVSWEEP_TRY(plan_others(run));
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
      const int64_t drafted = i - planned.known();
      batch_.tokens.push_back(drafted < 0 ? job.tokens[static_cast<size_t>(position)]
                                          : planned.draft[static_cast<size_t>(drafted)]);
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

// None of the step's tokens came, and those who had a draft go on without.
void BatchRunner::undo(Run& run) {
  for (const Planned& planned : planned_) {
    Sequence& sequence = run.sequences.at(planned.sequence);
    sequence.cache->drop_chunk();
    if (!planned.draft.empty()) run.drafter.give_up(sequence.job);
  }
}

// A wrong draft may lead to numbers that decoding would never have met.
Status BatchRunner::step(Run& run) {
  KVSWEEP_TRY(plan(run, true));
  fill_batch(run);
  const Status made = forward(run);
  if (made.ok() || !held_ || made.error().code != ErrorCode::numerics) return made;
  undo(run);
  KVSWEEP_TRY(plan(run, false));
  fill_batch(run);
  return forward(run);
}

void BatchRunner::account(Run& run, double step_ms) const {
  const auto rows = static_cast<int64_t>(batch_.tokens.size());
  const double row_ms = step_ms / static_cast<double>(rows);
  const auto decodes = [](const Planned& planned) { return planned.known() == 1; };
  if (std::all_of(planned_.begin(), planned_.end(), decodes)) run.drafter.step(rows, step_ms);
  for (const Planned& planned : planned_) {
    Sequence& sequence = run.sequences.at(planned.sequence);
    const int64_t prompt = run.jobs[static_cast<size_t>(sequence.job)].prompt_tokens;
    const int64_t prefill = std::clamp<int64_t>(prompt - sequence.fed, 0, planned.count);
    sequence.stats.prefill_ms += row_ms * static_cast<double>(prefill);
    sequence.stats.decode_ms += row_ms * static_cast<double>(planned.count - prefill);
  }
}

void BatchRunner::settle(Run& run) {
  run.tokens = 0;
  for (const Planned& planned : planned_) settle_one(run, planned);
}

// Tokens of the draft stay as far as they are those that decoding chooses.
void BatchRunner::settle_one(Run& run, const Planned& planned) {
  Sequence& sequence = run.sequences.at(planned.sequence);
  const bool complete = run.sequences.pending(sequence) == planned.known();
  const bool chooses = complete && !sequence.shared;
  int64_t kept = planned.known();
  // The draft points into the drafter, which forgets none of it while the job runs.
  std::optional<int32_t> next = chooses ? choose(run, sequence) : std::nullopt;
  while (next && kept < planned.count &&
         *next == planned.draft[static_cast<size_t>(kept - planned.known())]) {
    ++kept;
    next = choose(run, sequence);
  }
  sequence.fed += kept;
  sequence.cache->end_chunk(kept);
  run.tokens += kept;
  if (!planned.draft.empty()) {
    run.drafter.verified(sequence.job, static_cast<int64_t>(planned.draft.size()),
                         kept - planned.known());
  }
  if (complete && sequence.shared) run.sequences.prompt_ready(planned.sequence);
  if (chooses && !next) finish(run, planned.sequence);
}

// The next token of a job; nothing when it is finished.
std::optional<int32_t> BatchRunner::choose(Run& run, Sequence& sequence) const {
  const std::optional<int32_t> next = run.handler.advance(sequence.job);
  if (next) {
    run.jobs[static_cast<size_t>(sequence.job)].tokens.push_back(*next);
    run.drafter.chose(sequence.job, *next);
  }
  return next;
}

void BatchRunner::finish(Run& run, int64_t index) const {
  Sequence& sequence = run.sequences.at(index);
  // Of the tokens that stay: a ring may have grown for drafts.
  const int64_t prompt = run.jobs[static_cast<size_t>(sequence.job)].prompt_tokens;
  sequence.stats.cache_bytes = sequence.layout->allocated_bytes(sequence.fed, prompt);
  sequence.stats.draft = run.drafter.use(sequence.job);
  run.handler.finished(sequence.job, sequence.stats);
  run.sequences.end(index);
  ++run.ended;
}

Status BatchRunner::run(std::vector<Job> jobs, JobHandler& handler) {
  const auto agree = [&](int64_t a, int64_t b) { return model_.lengths_agree(a, b); };
  Sequences sequences(jobs, options_.share_prompts, agree, pool_);
  Run run{jobs, handler, sequences, Drafter(jobs, model_.batch_invariant(), options_.draft_tokens)};
  while (!sequences.done()) {
    if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::preempted, "the run was cancelled"};
    }
    run.ended = 0;
    run.tokens = 0;
    KVSWEEP_TRY(start(run));
    if (!sequences.running().empty()) {
      const SteadyClock::time_point start = SteadyClock::now();
      KVSWEEP_TRY(step(run));
      account(run, milliseconds_since(start));
      settle(run);
    }
    if (options_.progress) options_.progress(run.ended, run.tokens);
  }
  return {};
}

}  // namespace kvsweep::engine
