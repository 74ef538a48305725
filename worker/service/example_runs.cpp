#include "worker/service/example_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "worker/service/stop_strings.hpp"
#include "worker/task/choices.hpp"

namespace kvsweep::service {
namespace {

Status check_mode(const wire::Unit& unit) {
  const std::vector<RunMode> modes = modes_of(unit.protocol);
  if (std::find(modes.begin(), modes.end(), unit.mode) != modes.end()) return {};
  return bad_input(fmt::format("task {} cannot be run in mode {}; its own is {}",
                               unit.protocol.name, to_string(unit.mode), to_string(modes.front())));
}

// The last token of a newline, as LongBench's pred.py takes it.
Result<int32_t> newline_token(const text::Tokenizer& tokenizer) {
  KVSWEEP_ASSIGN(const std::vector<int32_t> ids, tokenizer.encode("\n", false));
  if (!ids.empty()) return ids.back();
  return bad_input("the model's tokenizer has no token for a newline, which ends answers here");
}

task::Likelihood likelihood(const engine::SequenceRequest& request,
                            const engine::SequenceOutput& output) {
  const auto scored = request.reference.begin() + request.unscored;
  task::Likelihood said;
  said.tokens = request.reference.end() - scored;
  said.log_likelihood = -output.nll * static_cast<double>(said.tokens);
  said.greedy = std::equal(scored, request.reference.end(), output.argmax.begin());
  return said;
}

}  // namespace

Result<ExampleRuns> ExampleRuns::make(const wire::Unit& unit, const task::Task& task,
                                      const task::ModelText& model) {
  KVSWEEP_TRY(check_mode(unit));
  ExampleRuns runs(unit.mode, task, model);
  for (const int64_t index : unit.examples) KVSWEEP_TRY(runs.add(unit, index));
  return runs;
}

Status ExampleRuns::add(const wire::Unit& unit, int64_t index) {
  Item item{.index = index, .first = requests_.size()};
  KVSWEEP_ASSIGN(item.example, task_->example(index));
  KVSWEEP_ASSIGN(auto sequences, task::render(item.example, unit.protocol, model_));
  item.count = sequences.size();
  if (item.example.newline_ends && newline_ < 0) {
    KVSWEEP_ASSIGN(newline_, newline_token(*model_.tokenizer));
  }
  for (task::Sequence& sequence : sequences) {
    engine::SequenceRequest request;
    request.prompt = std::move(sequence.prompt);
    request.reference = std::move(sequence.reference);
    request.unscored = sequence.unscored;
    request.compared = request.reference.empty();
    if (request.reference.empty()) KVSWEEP_TRY(set_up_answer(unit, item, request));
    requests_.push_back(std::move(request));
  }
  items_.push_back(std::move(item));
  return {};
}

Status ExampleRuns::set_up_answer(const wire::Unit& unit, const Item& item,
                                  engine::SequenceRequest& request) const {
  request.max_new_tokens = unit.protocol.max_new_tokens;
  if (mode_ == RunMode::forced) {
    const auto it = unit.references.find(item.index);
    if (it == unit.references.end() || it->second.tokens.empty()) {
      return bad_input(fmt::format(
          "example {} is to be teacher-forced, but the lease carries no baseline output for it",
          item.index));
    }
    request.reference = it->second.tokens;
    return {};
  }
  const auto draft = unit.drafts.find(item.index);
  if (draft != unit.drafts.end()) request.draft = draft->second;
  if (item.example.newline_ends) {
    request.not_first = model_.tokenizer->eos_ids();
    request.not_first.push_back(newline_);
  }
  return {};
}

bool ExampleRuns::ends(int64_t index, const std::vector<int32_t>& tokens) const {
  const task::Example& example = items_[static_cast<size_t>(index)].example;
  if (example.newline_ends && tokens.back() == newline_) return true;
  return ends_with_stop(*model_.tokenizer, tokens, example.stops);
}

Result<std::vector<Measurement>> ExampleRuns::measurements(
    const std::vector<engine::SequenceOutput>& outputs) const {
  std::vector<Measurement> all;
  for (const Item& item : items_) {
    KVSWEEP_ASSIGN(Measurement m, measurement(item, outputs.data() + item.first));
    all.push_back(std::move(m));
  }
  return all;
}

Result<Measurement> ExampleRuns::measurement(const Item& item,
                                             const engine::SequenceOutput* outputs) const {
  Measurement m{.example = item.index, .example_hash = item.example.hash};
  for (size_t i = 0; i < item.count; ++i) {
    m.prompt_tokens += static_cast<int64_t>(requests_[item.first + i].prompt.size());
    m.cache_bytes = std::max(m.cache_bytes, outputs[i].cache_bytes);
    m.timings.prefill_ms += outputs[i].prefill_ms;
    m.timings.decode_ms += outputs[i].decode_ms;
  }
  switch (mode_) {
    case RunMode::generate:
      m.draft = outputs->draft;
      KVSWEEP_TRY(set_generated(item, *outputs, m));
      break;
    case RunMode::forced:
      m.output_tokens = static_cast<int64_t>(requests_[item.first].reference.size());
      m.token_agreement = outputs->token_agreement;
      m.kl = outputs->kl;
      m.nll = outputs->nll;
      break;
    case RunMode::choices:
    case RunMode::rolling:
      set_likelihoods(item, outputs, m);
      break;
  }
  return m;
}

Status ExampleRuns::set_generated(const Item& item, const engine::SequenceOutput& output,
                                  Measurement& m) const {
  KVSWEEP_ASSIGN(const std::string text, model_.tokenizer->decode(output.tokens, true));
  m.text = task::cut_at_stops(text, item.example.stops);
  m.tokens = output.tokens;
  m.output_tokens = static_cast<int64_t>(output.tokens.size());
  const task::Score score = task_->score(item.example, m.text);
  m.answer = score.answer;
  m.exact_match = score.exact_match;
  m.strict_match = score.strict_match;
  return {};
}

void ExampleRuns::set_likelihoods(const Item& item, const engine::SequenceOutput* outputs,
                                  Measurement& m) const {
  std::vector<task::Likelihood> likelihoods;
  for (size_t i = 0; i < item.count; ++i) {
    likelihoods.push_back(likelihood(requests_[item.first + i], outputs[i]));
    m.output_tokens += likelihoods.back().tokens;
  }
  if (mode_ == RunMode::rolling) {
    const task::Likelihood all = task::sum(likelihoods);
    m.nll = -all.log_likelihood / static_cast<double>(all.tokens);
    m.text = task::figures_of_text(item.example, all).dump();
    return;
  }
  const task::Score score = task::score_choices(item.example, likelihoods);
  m.answer = score.answer;
  m.exact_match = score.exact_match;
  m.strict_match = score.strict_match;
  m.nll = task::gold_nll(item.example, likelihoods);
  m.text = task::figures_of_choices(likelihoods).dump();
}

}  // namespace kvsweep::service
