#include "worker/engine/engine.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "core/catalog/page_layout.hpp"
#include "core/scheme.hpp"
#include "worker/cache/kv_cache.hpp"
#include "worker/engine/batch_runner.hpp"
#include "worker/engine/environment.hpp"
#include "worker/engine/handlers.hpp"
#include "worker/engine/layouts.hpp"
#include "worker/engine/range_observer.hpp"
#include "worker/engine/scoring.hpp"
#include "worker/model/model.hpp"
#include "worker/model/parallel.hpp"

namespace kvsweep::engine {
namespace {

constexpr int64_t kBaselineBudget = int64_t{1} << 30;  // bytes of baseline logits that are kept

}  // namespace

struct Engine::State {
  EngineOptions options;
  std::unique_ptr<model::Model> model;
  BaselineCache baselines{kBaselineBudget};

  Status check_map_fits(const PrecisionMap& map) const;
  Status check(const SequenceRequest& request, int64_t index) const;
  Status check_tokens(const std::vector<int32_t>& tokens, const char* what, int64_t index) const;
  int64_t score_bytes(const SequenceRequest& request) const;

  struct Progress {
    const ProgressSink& sink;
    int64_t finished = 0;
    int64_t tokens = 0;
  };
  // One call of run.
  struct Pass {
    const std::vector<SequenceRequest>& requests;
    const RunOptions& options;
    const Layouts& layouts;
    Progress& progress;
    std::vector<std::vector<SequenceOutput>>& outputs;  // [maps][requests]

    bool asks_for_baseline() const {
      for (size_t map = 0; map < outputs.size(); ++map) {
        if (layouts.is_baseline(map)) return true;
      }
      return false;
    }
  };
  Status run_jobs(const Pass& pass, std::vector<Job> jobs, JobHandler& handler, bool counts) const;
  Status generate(const Pass& pass, const std::vector<size_t>& requests) const;
  Status score_alone(const Pass& pass, const std::vector<size_t>& requests) const;
  Status force(const Pass& pass, const std::vector<size_t>& requests);
  Status force_group(const Pass& pass, const std::vector<size_t>& requests);
  using Baselines = std::vector<std::shared_ptr<const BaselineScores>>;
  Result<Baselines> score_baselines(const Pass& pass, const std::vector<size_t>& requests);
};

Status Engine::State::check_map_fits(const PrecisionMap& map) const {
  KVSWEEP_TRY(check_map(map, model->geometry()));
  if (map.scheme.key_bias != KeyBias::factored || model->has_key_bias()) return {};
  return bad_input(fmt::format(
      "the map factors out the bias of the key projection (key_bias: factored), but this {} model "
      "has none, or normalises keys after it; remove the option",
      model->geometry().family));
}

Status Engine::State::check_tokens(const std::vector<int32_t>& tokens, const char* what,
                                   int64_t index) const {
  const int64_t vocab = model->vocab_size();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    return bad_input(
        fmt::format("sequence {}: {} token {} is {}, but the model's vocabulary has "
                    "ids 0 to {}; the tokenizer belongs to another model",
                    index, what, i, tokens[i], vocab - 1));
  }
  return {};
}

Status Engine::State::check(const SequenceRequest& request, int64_t index) const {
  if (request.prompt.empty()) {
    return bad_input(
        fmt::format("sequence {} has an empty prompt; at least one token is needed", index));
  }
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t more = request.reference.empty() ? int64_t{request.max_new_tokens}
                                                 : static_cast<int64_t>(request.reference.size());
  if (more < 1) {
    return bad_input(
        fmt::format("sequence {} asks for {} new tokens; at least 1 is needed", index, more));
  }
  const int64_t context = model->geometry().max_context;
  if (prompt + more - 1 > context) {
    return bad_input(
        fmt::format("sequence {} needs {} tokens of context ({} of prompt and {} new "
                    "ones, the last of which is never read), but the model's context is {}; use "
                    "fewer shots or fewer "
                    "new tokens",
                    index, prompt + more - 1, prompt, more, context));
  }
  if (!request.reference.empty() && !request.draft.empty()) {
    return bad_input(
        fmt::format("sequence {} has a reference of {} tokens and a draft of {}; only "
                    "a sequence without a reference can use a draft",
                    index, request.reference.size(), request.draft.size()));
  }
  if (request.unscored < 0 || (request.unscored > 0 && request.unscored >= more)) {
    return bad_input(
        fmt::format("sequence {}: {} of its {} reference tokens are not to be scored; "
                    "at least one must be",
                    index, request.unscored, more));
  }
  KVSWEEP_TRY(check_tokens(request.prompt, "prompt", index));
  KVSWEEP_TRY(check_tokens(request.draft, "draft", index));
  KVSWEEP_TRY(check_tokens(request.not_first, "barred", index));
  return check_tokens(request.reference, "reference", index);
}

int64_t Engine::State::score_bytes(const SequenceRequest& request) const {
  return (static_cast<int64_t>(request.reference.size()) - request.unscored) * model->vocab_size() *
         static_cast<int64_t>(sizeof(float));
}

Status Engine::State::run_jobs(const Pass& pass, std::vector<Job> jobs, JobHandler& handler,
                               bool counts) const {
  cache::Pool pool(options.cache_budget_bytes);
  RunnerOptions runner;
  runner.max_batch = std::max(1, options.max_batch);
  runner.prefill_chunk = std::max(1, options.prefill_chunk);
  runner.share_prompts = options.share_prompts;
  runner.cancel = pass.options.cancel;
  runner.progress = [&](int64_t finished, int64_t tokens) {
    pass.progress.finished += counts ? finished : 0;
    pass.progress.tokens += tokens;
    if (pass.progress.sink) pass.progress.sink(pass.progress.finished, pass.progress.tokens);
  };
  BatchRunner batch(*model, pool, std::move(runner));
  return batch.run(std::move(jobs), handler);
}

Status Engine::State::generate(const Pass& pass, const std::vector<size_t>& requests) const {
  std::vector<Job> jobs;
  std::vector<Ticket> tickets;
  for (size_t map = 0; map < pass.outputs.size(); ++map) {
    for (const size_t r : requests) {
      tickets.push_back({static_cast<int64_t>(r), &pass.requests[r], &pass.outputs[map][r]});
      jobs.push_back(pass.layouts.under(map, GenerateHandler::job(pass.requests[r], pass.options)));
    }
  }
  GenerateHandler handler(tickets, pass.options, model->vocab_size());
  return run_jobs(pass, std::move(jobs), handler, true);
}

// What is not compared keeps no logits, so all of it runs together.
Status Engine::State::score_alone(const Pass& pass, const std::vector<size_t>& requests) const {
  if (requests.empty()) return {};
  std::vector<Job> jobs;
  std::vector<Ticket> tickets;
  for (size_t map = 0; map < pass.outputs.size(); ++map) {
    for (const size_t r : requests) {
      tickets.push_back({static_cast<int64_t>(r), &pass.requests[r], &pass.outputs[map][r]});
      jobs.push_back(pass.layouts.under(map, ForcedHandler::job(pass.requests[r])));
    }
  }
  const std::vector<ForcedHandler::Sources> sources(tickets.size());
  ForcedHandler handler(tickets, sources, model->vocab_size());
  return run_jobs(pass, std::move(jobs), handler, true);
}

// Baseline logits are large, so requests are taken in groups whose logits fit the cache of
// baselines together; a request that does not fit alone is a group of its own.
Status Engine::State::force(const Pass& pass, const std::vector<size_t>& requests) {
  std::vector<size_t> group;
  int64_t bytes = 0;
  for (const size_t r : requests) {
    const int64_t more = score_bytes(pass.requests[r]);
    if (!group.empty() && bytes + more > baselines.budget_bytes()) {
      KVSWEEP_TRY(force_group(pass, group));
      group.clear();
      bytes = 0;
    }
    group.push_back(r);
    bytes += more;
  }
  return group.empty() ? Status{} : force_group(pass, group);
}

namespace {

std::string baseline_key(const SequenceRequest& request, BaseType base) {
  const Job job = ForcedHandler::job(request);
  return fmt::format("{}/{}", BaselineCache::key(job.tokens, job.first_logit, base), job.length);
}

}  // namespace

// The baseline's logits of these requests, from earlier runs or a run of its own, which then also
// answers the baseline among the maps.
Result<Engine::State::Baselines> Engine::State::score_baselines(
    const Pass& pass, const std::vector<size_t>& requests) {
  Baselines found;
  std::vector<Ticket> tickets;
  std::vector<ForcedHandler::Sources> kept;
  std::vector<Job> jobs;
  std::vector<SequenceOutput> outputs(requests.size());
  const bool asked = pass.asks_for_baseline();
  for (size_t i = 0; i < requests.size(); ++i) {
    const SequenceRequest& request = pass.requests[requests[i]];
    found.push_back(asked ? nullptr : baselines.find(baseline_key(request, pass.options.base)));
    if (found.back()) continue;
    const auto scores = std::make_shared<BaselineScores>(
        static_cast<int64_t>(request.reference.size()) - request.unscored, model->vocab_size());
    found.back() = scores;
    tickets.push_back({static_cast<int64_t>(requests[i]), &request, &outputs[i]});
    kept.push_back({nullptr, scores});
    jobs.push_back(pass.layouts.under_baseline(ForcedHandler::job(request)));
  }
  if (tickets.empty()) return found;
  ForcedHandler handler(tickets, kept, model->vocab_size());
  KVSWEEP_TRY(run_jobs(pass, std::move(jobs), handler, asked));
  for (size_t i = 0; i < tickets.size(); ++i) {
    baselines.put(baseline_key(*tickets[i].request, pass.options.base), kept[i].keep);
  }
  for (size_t map = 0; map < pass.outputs.size(); ++map) {
    if (!pass.layouts.is_baseline(map)) continue;
    for (size_t i = 0; i < requests.size(); ++i) pass.outputs[map][requests[i]] = outputs[i];
  }
  return found;
}

Status Engine::State::force_group(const Pass& pass, const std::vector<size_t>& requests) {
  KVSWEEP_ASSIGN(const Baselines scores, score_baselines(pass, requests));
  std::vector<Job> jobs;
  std::vector<Ticket> tickets;
  std::vector<ForcedHandler::Sources> sources;
  for (size_t map = 0; map < pass.outputs.size(); ++map) {
    if (pass.layouts.is_baseline(map)) continue;
    for (size_t i = 0; i < requests.size(); ++i) {
      const size_t r = requests[i];
      tickets.push_back({static_cast<int64_t>(r), &pass.requests[r], &pass.outputs[map][r]});
      sources.push_back({scores[i], nullptr});
      jobs.push_back(pass.layouts.under(map, ForcedHandler::job(pass.requests[r])));
    }
  }
  ForcedHandler handler(tickets, sources, model->vocab_size());
  return run_jobs(pass, std::move(jobs), handler, true);
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::load(const std::string& model_dir, const EngineOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  KVSWEEP_ASSIGN(state->model, model::load_model(model_dir, {options.threads}));
  return Engine(std::move(state));
}

const ModelGeometry& Engine::geometry() const {
  return state_->model->geometry();
}

int64_t Engine::vocab_size() const {
  return state_->model->vocab_size();
}

bool Engine::batch_invariant() const {
  return state_->model->batch_invariant();
}

Result<std::vector<SequenceOutput>> Engine::run(const PrecisionMap& map,
                                                const std::vector<SequenceRequest>& requests,
                                                const RunOptions& options) {
  KVSWEEP_ASSIGN(auto outputs, run(std::vector<PrecisionMap>{map}, requests, options));
  return std::move(outputs.front());
}

Result<std::vector<std::vector<SequenceOutput>>> Engine::run(
    const std::vector<PrecisionMap>& maps, const std::vector<SequenceRequest>& requests,
    const RunOptions& options) {
  State& state = *state_;
  for (const PrecisionMap& map : maps) KVSWEEP_TRY(state.check_map_fits(map));
  std::vector<size_t> generated;
  std::vector<size_t> forced;
  std::vector<size_t> alone;
  for (size_t i = 0; i < requests.size(); ++i) {
    KVSWEEP_TRY(state.check(requests[i], static_cast<int64_t>(i)));
    const bool generates = requests[i].reference.empty();
    (generates ? generated : requests[i].compared ? forced : alone).push_back(i);
  }
  std::vector<std::vector<SequenceOutput>> outputs(maps.size(),
                                                   std::vector<SequenceOutput>(requests.size()));
  const Layouts layouts(maps, geometry(), options.base);
  State::Progress progress{options.progress};
  const State::Pass pass{requests, options, layouts, progress, outputs};
  try {
    KVSWEEP_TRY(state.generate(pass, generated));
    KVSWEEP_TRY(state.score_alone(pass, alone));
    KVSWEEP_TRY(state.force(pass, forced));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::oom, "memory ran out while running; lower the batch size"};
  } catch (const c10::Error& error) {
    return Error{ErrorCode::internal,
                 fmt::format("libtorch failed: {}", error.what_without_backtrace())};
  }
  return outputs;
}

Result<ObservedRanges> Engine::observe_ranges(const std::vector<SequenceRequest>& requests,
                                              const RunOptions& options,
                                              std::vector<SequenceOutput>* outputs) {
  auto observer = std::make_unique<RangeObserver>(std::move(state_->model));
  RangeObserver& watching = *observer;
  state_->model = std::move(observer);
  std::vector<SequenceRequest> plain = requests;  // a wrong draft is not what the model sees
  for (SequenceRequest& request : plain) request.draft.clear();
  auto ran = run(baseline_map({}, geometry().num_layers()), plain, options);
  ObservedRanges ranges = watching.ranges();
  state_->model = watching.take_model();
  if (!ran.ok()) return ran.error();
  if (outputs != nullptr) *outputs = std::move(ran).value();
  return ranges;
}

Result<std::vector<float>> Engine::logits(const PrecisionMap& map,
                                          const std::vector<int32_t>& tokens, BaseType base,
                                          int chunk) {
  State& state = *state_;
  KVSWEEP_TRY(state.check_map_fits(map));
  const CacheLayout layout = layout_of(map, geometry(), base);
  SequenceRequest request;
  request.prompt = tokens;
  request.max_new_tokens = 1;
  KVSWEEP_TRY(state.check(request, 0));
  const int64_t count = static_cast<int64_t>(tokens.size());
  try {
    CaptureHandler handler(count, state.model->vocab_size());
    cache::Pool pool(state.options.cache_budget_bytes);
    RunnerOptions options;
    options.prefill_chunk = chunk > 0 ? chunk : count;
    BatchRunner batch(*state.model, pool, options);
    KVSWEEP_TRY(batch.run({{&layout, nullptr, tokens, count, 0, count}}, handler));
    return handler.take();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::oom, "memory ran out while running; use a shorter sequence"};
  }
}

std::string Engine::numerics_class() {
  return engine::numerics_class();
}

}  // namespace kvsweep::engine
