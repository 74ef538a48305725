#include "worker/engine/handlers.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace kvsweep::engine {
namespace {

void copy_stats(const JobStats& stats, SequenceOutput& output) {
  output.cache_bytes = stats.cache_bytes;
  output.prefill_ms = stats.prefill_ms;
  output.decode_ms = stats.decode_ms;
  output.draft = stats.draft;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

GenerateHandler::GenerateHandler(const std::vector<Ticket>& tickets, const RunOptions& options,
                                 int64_t vocab)
    : tickets_(tickets), options_(options), vocab_(vocab), choices_(tickets.size()) {
  for (size_t i = 0; i < tickets.size(); ++i) {
    choices_[i].resize(static_cast<size_t>(tickets[i].request->max_new_tokens));
  }
}

// The last token generated is never fed.
Job GenerateHandler::job(const SequenceRequest& request, const RunOptions& options) {
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  Job job;
  job.tokens = request.prompt;
  job.prompt_tokens = prompt;
  job.first_logit = prompt - 1;
  job.most_tokens = prompt + request.max_new_tokens - 1;
  const auto& eos = options.eos_ids;
  const auto end =
      std::find_first_of(request.draft.begin(), request.draft.end(), eos.begin(), eos.end());
  job.draft.assign(request.draft.begin(), end == request.draft.end() ? end : end + 1);
  return job;
}

Status GenerateHandler::row(int64_t job, int64_t position, const float* logits) {
  const auto index = static_cast<size_t>(job);
  const SequenceRequest& request = *tickets_[index].request;
  const int64_t token = position + 1 - static_cast<int64_t>(request.prompt.size());
  std::vector<float> allowed;
  if (!request.not_first.empty() && token == 0) {
    allowed.assign(logits, logits + vocab_);
    for (const int32_t barred : request.not_first) {
      allowed[static_cast<size_t>(barred)] = std::numeric_limits<float>::lowest();
    }
    logits = allowed.data();
  }
  KVSWEEP_ASSIGN(choices_[index].at(static_cast<size_t>(token)), argmax(logits, vocab_));
  return {};
}

std::optional<int32_t> GenerateHandler::advance(int64_t job) {
  const Ticket& ticket = tickets_[static_cast<size_t>(job)];
  std::vector<int32_t>& tokens = ticket.output->tokens;
  const int32_t token = choices_[static_cast<size_t>(job)].at(tokens.size());
  tokens.push_back(token);
  const auto& eos = options_.eos_ids;
  if (std::find(eos.begin(), eos.end(), token) != eos.end()) return std::nullopt;
  if (static_cast<int>(tokens.size()) >= ticket.request->max_new_tokens) return std::nullopt;
  if (options_.stop && options_.stop(ticket.index, tokens)) return std::nullopt;
  return token;
}

void GenerateHandler::finished(int64_t job, const JobStats& stats) {
  copy_stats(stats, *tickets_[static_cast<size_t>(job)].output);
}

ForcedHandler::ForcedHandler(const std::vector<Ticket>& tickets,
                             const std::vector<Sources>& sources, int64_t vocab)
    : tickets_(tickets), sources_(sources), vocab_(vocab), scores_(tickets.size()) {
  for (size_t i = 0; i < tickets.size(); ++i) {
    const SequenceRequest& request = *tickets[i].request;
    const size_t positions = request.reference.size() - static_cast<size_t>(request.unscored);
    scores_[i].kl.resize(positions);
    scores_[i].nll.resize(positions);
    scores_[i].argmax.resize(positions);
    scores_[i].agrees.resize(positions);
  }
}

// The last reference token is scored, never fed. The length is that of the generation which the
// reference came from, so that both see the same keys.
Job ForcedHandler::job(const SequenceRequest& request) {
  Job job;
  job.tokens = request.prompt;
  job.tokens.insert(job.tokens.end(), request.reference.begin(), request.reference.end() - 1);
  job.prompt_tokens = static_cast<int64_t>(request.prompt.size());
  job.first_logit = job.prompt_tokens - 1 + request.unscored;
  job.most_tokens = static_cast<int64_t>(job.tokens.size());
  job.length = std::max(job.most_tokens, job.prompt_tokens + request.max_new_tokens - 1);
  return job;
}

Status ForcedHandler::row(int64_t job, int64_t position, const float* logits) {
  const SequenceRequest& request = *tickets_[static_cast<size_t>(job)].request;
  const Sources& sources = sources_[static_cast<size_t>(job)];
  const size_t in_reference = static_cast<size_t>(position) - (request.prompt.size() - 1);
  const size_t at = in_reference - static_cast<size_t>(request.unscored);
  KVSWEEP_ASSIGN(const RowSummary row, summarise(logits, vocab_));
  const float* baseline = logits;
  RowSummary baseline_row = row;
  if (sources.baseline) {
    baseline = sources.baseline->logits.data() + static_cast<int64_t>(at) * vocab_;
    baseline_row = sources.baseline->rows[at];
  }
  if (sources.keep) {
    std::memcpy(sources.keep->logits.data() + static_cast<int64_t>(at) * vocab_, logits,
                static_cast<size_t>(vocab_) * sizeof(float));
    sources.keep->rows[at] = row;
  }
  Scores& scores = scores_[static_cast<size_t>(job)];
  if (sources.baseline) {
    scores.kl[at] = kl_divergence(baseline, baseline_row, logits, row, vocab_);
  }
  scores.nll[at] = row.log_sum - static_cast<double>(logits[request.reference[in_reference]]);
  scores.argmax[at] = row.argmax;
  scores.agrees[at] = row.argmax == baseline_row.argmax ? 1 : 0;
  return {};
}

std::optional<int32_t> ForcedHandler::advance(int64_t) {
  return std::nullopt;
}

void ForcedHandler::finished(int64_t job, const JobStats& stats) {
  Scores& scores = scores_[static_cast<size_t>(job)];
  SequenceOutput& output = *tickets_[static_cast<size_t>(job)].output;
  copy_stats(stats, output);
  output.kl = mean(scores.kl);
  output.nll = mean(scores.nll);
  const auto agreed = std::count(scores.agrees.begin(), scores.agrees.end(), 1);
  output.token_agreement = static_cast<double>(agreed) / static_cast<double>(scores.agrees.size());
  output.argmax = std::move(scores.argmax);
}

CaptureHandler::CaptureHandler(int64_t positions, int64_t vocab)
    : vocab_(vocab), logits_(static_cast<size_t>(positions * vocab)) {}

Status CaptureHandler::row(int64_t, int64_t position, const float* logits) {
  std::memcpy(logits_.data() + position * vocab_, logits,
              static_cast<size_t>(vocab_) * sizeof(float));
  return {};
}

}  // namespace kvsweep::engine
