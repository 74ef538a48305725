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

  // What a pass runs under. A baseline map always runs under the default scheme, so that its
  // numbers do not depend on the scheme of the maps it is compared with.
  Status check_key_bias(const PrecisionMap& map) const;
  Result<CacheLayout> layout_of(const PrecisionMap& map, BaseType base) const;
  Status check(const SequenceRequest& request, int64_t index) const;
  Status check_tokens(const std::vector<int32_t>& tokens, const char* what, int64_t index) const;
  int64_t score_bytes(const SequenceRequest& request) const;

  struct Progress {
    const ProgressSink& sink;
    int64_t finished = 0;
    int64_t tokens = 0;
  };
  struct Pass {
    const CacheLayout& layout;
    const RunOptions& options;
    Progress& progress;
    bool counts = true;  // its sequences are the caller's, not a baseline's
  };
  Status run_pass(const Pass& pass, std::vector<Job> jobs, JobHandler& handler);
  Status generate(const Pass& pass, const std::vector<Ticket>& tickets);
  Status force(const Pass& pass, bool baseline, const std::vector<Ticket>& tickets);
  Status force_group(const Pass& pass, bool baseline, const std::vector<Ticket>& tickets);
  Status fill_baselines(const Pass& pass, const std::vector<Ticket>& tickets,
                        std::vector<ForcedHandler::Sources>& sources);
};

Result<CacheLayout> Engine::State::layout_of(const PrecisionMap& map, BaseType base) const {
  KVSWEEP_TRY(check_map(map, model->geometry()));
  KVSWEEP_TRY(check_key_bias(map));
  PrecisionMap used = map;
  if (map.is_baseline()) used.scheme = {};
  return cache_layout(used, model->geometry(), base);
}

Status Engine::State::check_key_bias(const PrecisionMap& map) const {
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
  KVSWEEP_TRY(check_tokens(request.prompt, "prompt", index));
  return check_tokens(request.reference, "reference", index);
}

int64_t Engine::State::score_bytes(const SequenceRequest& request) const {
  return static_cast<int64_t>(request.reference.size()) * model->vocab_size() *
         static_cast<int64_t>(sizeof(float));
}

Status Engine::State::run_pass(const Pass& pass, std::vector<Job> jobs, JobHandler& handler) {
  cache::Pool pool(options.cache_budget_bytes);
  RunnerOptions runner;
  runner.max_batch = std::max(1, options.max_batch);
  runner.prefill_chunk = std::max(1, options.prefill_chunk);
  runner.cancel = pass.options.cancel;
  runner.progress = [&](int64_t finished, int64_t tokens) {
    pass.progress.finished += pass.counts ? finished : 0;
    pass.progress.tokens += tokens;
    if (pass.progress.sink) pass.progress.sink(pass.progress.finished, pass.progress.tokens);
  };
  BatchRunner batch(*model, pass.layout, pool, std::move(runner));
  return batch.run(std::move(jobs), handler);
}

Status Engine::State::generate(const Pass& pass, const std::vector<Ticket>& tickets) {
  std::vector<Job> jobs;
  for (const Ticket& ticket : tickets) jobs.push_back(GenerateHandler::job(*ticket.request));
  GenerateHandler handler(tickets, pass.options, model->vocab_size());
  return run_pass(pass, std::move(jobs), handler);
}

// Baseline logits are large, so requests are taken in groups whose logits fit the cache of
// baselines together; a request that does not fit alone is a group of its own.
Status Engine::State::force(const Pass& pass, bool baseline, const std::vector<Ticket>& tickets) {
  std::vector<Ticket> group;
  int64_t bytes = 0;
  for (const Ticket& ticket : tickets) {
    const int64_t more = score_bytes(*ticket.request);
    if (!group.empty() && bytes + more > baselines.budget_bytes()) {
      KVSWEEP_TRY(force_group(pass, baseline, group));
      group.clear();
      bytes = 0;
    }
    group.push_back(ticket);
    bytes += more;
  }
  return group.empty() ? Status{} : force_group(pass, baseline, group);
}

namespace {

std::string baseline_key(const SequenceRequest& request, BaseType base) {
  const Job job = ForcedHandler::job(request);
  return fmt::format("{}/{}", BaselineCache::key(job.tokens, job.first_logit, base), job.length);
}

}  // namespace

Status Engine::State::fill_baselines(const Pass& pass, const std::vector<Ticket>& tickets,
                                     std::vector<ForcedHandler::Sources>& sources) {
  std::vector<Ticket> missing;
  std::vector<ForcedHandler::Sources> kept;
  std::vector<Job> jobs;
  std::vector<size_t> places;
  std::vector<SequenceOutput> unused(tickets.size());
  for (size_t i = 0; i < tickets.size(); ++i) {
    const SequenceRequest& request = *tickets[i].request;
    sources[i].baseline = baselines.find(baseline_key(request, pass.options.base));
    if (sources[i].baseline) continue;
    missing.push_back({tickets[i].index, &request, &unused[i]});
    kept.push_back(
        {nullptr, std::make_shared<BaselineScores>(static_cast<int64_t>(request.reference.size()),
                                                   model->vocab_size())});
    jobs.push_back(ForcedHandler::job(request));
    places.push_back(i);
  }
  if (missing.empty()) return {};
  const PrecisionMap map = baseline_map({}, model->geometry().num_layers());
  KVSWEEP_ASSIGN(const CacheLayout plain, layout_of(map, pass.options.base));
  ForcedHandler handler(missing, kept, model->vocab_size());
  KVSWEEP_TRY(run_pass({plain, pass.options, pass.progress, false}, std::move(jobs), handler));
  for (size_t i = 0; i < missing.size(); ++i) {
    sources[places[i]].baseline = kept[i].keep;
    baselines.put(baseline_key(*missing[i].request, pass.options.base), kept[i].keep);
  }
  return {};
}

Status Engine::State::force_group(const Pass& pass, bool baseline,
                                  const std::vector<Ticket>& tickets) {
  std::vector<ForcedHandler::Sources> sources(tickets.size());
  std::vector<Job> jobs;
  for (size_t i = 0; i < tickets.size(); ++i) {
    const SequenceRequest& request = *tickets[i].request;
    jobs.push_back(ForcedHandler::job(request));
    if (!baseline) continue;
    sources[i].keep = std::make_shared<BaselineScores>(
        static_cast<int64_t>(request.reference.size()), model->vocab_size());
  }
  if (!baseline) KVSWEEP_TRY(fill_baselines(pass, tickets, sources));
  ForcedHandler handler(tickets, sources, model->vocab_size());
  KVSWEEP_TRY(run_pass(pass, std::move(jobs), handler));
  for (size_t i = 0; i < tickets.size() && baseline; ++i) {
    baselines.put(baseline_key(*tickets[i].request, pass.options.base), sources[i].keep);
  }
  return {};
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
  State& state = *state_;
  KVSWEEP_ASSIGN(const CacheLayout layout, state.layout_of(map, options.base));
  std::vector<SequenceOutput> outputs(requests.size());
  std::vector<Ticket> generated;
  std::vector<Ticket> forced;
  for (size_t i = 0; i < requests.size(); ++i) {
    KVSWEEP_TRY(state.check(requests[i], static_cast<int64_t>(i)));
    std::vector<Ticket>& list = requests[i].reference.empty() ? generated : forced;
    list.push_back({static_cast<int64_t>(i), &requests[i], &outputs[i]});
  }
  State::Progress progress{options.progress};
  const State::Pass pass{layout, options, progress};
  try {
    KVSWEEP_TRY(state.generate(pass, generated));
    KVSWEEP_TRY(state.force(pass, map.is_baseline(), forced));
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
  auto ran = run(baseline_map({}, geometry().num_layers()), requests, options);
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
  KVSWEEP_ASSIGN(const CacheLayout layout, state.layout_of(map, base));
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
    BatchRunner batch(*state.model, layout, pool, options);
    KVSWEEP_TRY(batch.run({{tokens, count, 0, count}}, handler));
    return handler.take();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::oom, "memory ran out while running; use a shorter sequence"};
  }
}

std::string Engine::numerics_class() {
  return engine::numerics_class();
}

}  // namespace kvsweep::engine
