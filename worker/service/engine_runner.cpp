#include "worker/service/engine_runner.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "core/geometry.hpp"
#include "core/log.hpp"
#include "worker/engine/engine.hpp"
#include "worker/service/stop_strings.hpp"
#include "worker/task/task.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::service {

namespace {

// A folder that is not there or cannot be read is, for the coordinator, input that is wrong.
ErrorCode failure_class(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
    case ErrorCode::io:
      return ErrorCode::bad_input;
    case ErrorCode::conflict:
      return ErrorCode::internal;
    default:
      return code;
  }
}

struct Model {
  std::string dir;
  std::string hash;
  engine::Engine engine;
  text::Tokenizer tokenizer;
};

// What the runs of all maps need, made once per unit.
struct Prepared {
  std::vector<task::Example> examples;  // in the order of unit.examples
  std::vector<engine::SequenceRequest> requests;
};

}  // namespace

struct EngineRunner::State {
  EngineRunnerOptions options;
  std::optional<Model> model;
  std::map<std::string, std::unique_ptr<task::Task>> tasks;  // by protocol hash

  Result<const task::Task*> open_task(const TaskProtocol& protocol);
  Status load_model(const wire::Unit& unit);
  Result<wire::UnitResult> describe(const wire::Unit& unit, UnitCounters& counters,
                                    const std::atomic<bool>& cancel);
  Result<wire::UnitResult> measure(const wire::Unit& unit, UnitCounters& counters,
                                   const std::atomic<bool>& cancel);
  Result<Prepared> prepare(const wire::Unit& unit, const task::Task& task) const;
  Result<engine::SequenceRequest> request(const wire::Unit& unit, int64_t example,
                                          const std::string& prompt) const;
  Status check_maps(const wire::Unit& unit) const;
  Result<std::vector<wire::MapMeasurements>> measure_maps(const wire::Unit& unit,
                                                          const task::Task& task,
                                                          const Prepared& prepared,
                                                          engine::RunOptions run);
  Result<Measurement> measurement(const wire::Unit& unit, int64_t index, const task::Task& task,
                                  const Prepared& prepared,
                                  const engine::SequenceOutput& output) const;
};

EngineRunner::EngineRunner(const EngineRunnerOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}

EngineRunner::~EngineRunner() = default;

wire::UnitResult EngineRunner::run(const wire::Unit& unit, UnitCounters& counters,
                                   const std::atomic<bool>& cancel) {
  Result<wire::UnitResult> result = unit.kind == wire::UnitKind::describe
                                        ? state_->describe(unit, counters, cancel)
                                        : state_->measure(unit, counters, cancel);
  if (result.ok()) return std::move(result).value();
  wire::UnitResult failed;
  failed.failure = wire::UnitFailure{failure_class(result.error().code), result.error().message};
  return failed;
}

Result<const task::Task*> EngineRunner::State::open_task(const TaskProtocol& protocol) {
  std::unique_ptr<task::Task>& task = tasks[protocol_hash(protocol, RunMode::generate)];
  if (!task) {
    KVSWEEP_ASSIGN(task, task::open_task(protocol, options.data_dir));
  }
  return static_cast<const task::Task*>(task.get());
}

Result<wire::UnitResult> EngineRunner::State::describe(const wire::Unit& unit,
                                                       UnitCounters& counters,
                                                       const std::atomic<bool>& cancel) {
  KVSWEEP_ASSIGN(const task::Task* const task, open_task(unit.protocol));
  wire::Description description{.examples = task->size()};
  counters.total = task->size();
  for (int64_t index = 0; index < task->size(); ++index) {
    if (cancel) return Error{ErrorCode::preempted, "the worker was asked to stop"};
    KVSWEEP_ASSIGN(const task::Example example, task->example(index));
    description.example_hashes.push_back(example.hash);
    counters.done = index + 1;
  }
  wire::UnitResult result;
  result.description = std::move(description);
  return result;
}

// The last model stays; a unit of the same folder and hash does not even look at the disk.
Status EngineRunner::State::load_model(const wire::Unit& unit) {
  if (model && model->dir == unit.model_dir && model->hash == unit.model_hash) return {};
  model.reset();
  KVSWEEP_ASSIGN(const std::string hash, model_hash(unit.model_dir));
  if (hash != unit.model_hash) {
    return bad_input(fmt::format(
        "the model folder {} on this worker has hash {}, the study is about {}; give every worker "
        "the same files",
        unit.model_dir, hash.substr(0, 12), unit.model_hash.substr(0, 12)));
  }
  log::info("worker", "loading " + unit.model_dir);
  engine::EngineOptions engine_options{.threads = options.threads};
  if (options.cache_budget_bytes > 0) {
    engine_options.cache_budget_bytes = options.cache_budget_bytes;
  }
  KVSWEEP_ASSIGN(text::Tokenizer tokenizer, text::Tokenizer::load(unit.model_dir));
  KVSWEEP_ASSIGN(engine::Engine engine, engine::Engine::load(unit.model_dir, engine_options));
  if (tokenizer.vocab_size() > engine.vocab_size()) {
    return bad_input(fmt::format(
        "the tokenizer of {} has {} tokens and its model {}: they do not belong together",
        unit.model_dir, tokenizer.vocab_size(), engine.vocab_size()));
  }
  model.emplace(Model{unit.model_dir, hash, std::move(engine), std::move(tokenizer)});
  log::info("worker", fmt::format("loaded {} ({} layers)", unit.model_dir,
                                  model->engine.geometry().num_layers()));
  return {};
}

Result<wire::UnitResult> EngineRunner::State::measure(const wire::Unit& unit,
                                                      UnitCounters& counters,
                                                      const std::atomic<bool>& cancel) {
  counters.total = static_cast<int64_t>(unit.examples.size() * unit.maps.size());
  KVSWEEP_ASSIGN(const task::Task* const task, open_task(unit.protocol));
  KVSWEEP_TRY(load_model(unit));
  KVSWEEP_ASSIGN(const Prepared prepared, prepare(unit, *task));
  wire::UnitResult result;
  result.model_hash = unit.model_hash;
  result.protocol_hash = protocol_hash(unit.protocol, unit.mode);
  result.base = unit.base;
  result.batch_invariant = model->engine.batch_invariant();
  engine::RunOptions run{
      .base = unit.base, .eos_ids = model->tokenizer.eos_ids(), .cancel = &cancel};
  run.progress = [&](int64_t finished, int64_t tokens) {
    counters.done = finished;
    counters.tokens = tokens;
  };
  KVSWEEP_ASSIGN(result.maps, measure_maps(unit, *task, prepared, std::move(run)));
  return result;
}

Result<Prepared> EngineRunner::State::prepare(const wire::Unit& unit,
                                              const task::Task& task) const {
  Prepared prepared;
  for (int64_t index : unit.examples) {
    KVSWEEP_ASSIGN(task::Example example, task.example(index));
    KVSWEEP_ASSIGN(engine::SequenceRequest sequence, request(unit, index, example.prompt));
    prepared.examples.push_back(std::move(example));
    prepared.requests.push_back(std::move(sequence));
  }
  return prepared;
}

Result<engine::SequenceRequest> EngineRunner::State::request(const wire::Unit& unit,
                                                             int64_t example,
                                                             const std::string& prompt) const {
  engine::SequenceRequest sequence;
  KVSWEEP_ASSIGN(sequence.prompt, model->tokenizer.encode(prompt, true));
  if (unit.mode == RunMode::generate) {
    sequence.max_new_tokens = unit.protocol.max_new_tokens;
    const auto draft = unit.drafts.find(example);
    if (draft != unit.drafts.end()) sequence.draft = draft->second;
    return sequence;
  }
  const auto it = unit.references.find(example);
  if (it == unit.references.end() || it->second.tokens.empty()) {
    return bad_input(fmt::format(
        "example {} is to be teacher-forced, but the lease carries no baseline output for it",
        example));
  }
  sequence.reference = it->second.tokens;
  return sequence;
}

Status EngineRunner::State::check_maps(const wire::Unit& unit) const {
  for (const PrecisionMap& map : unit.maps) {
    KVSWEEP_TRY(check_map(map, model->engine.geometry()));
    const std::string& ranged = map.scheme.ranges.model_hash;
    if (ranged.empty() || ranged == unit.model_hash) continue;
    return bad_input(fmt::format(
        "the ranges of the calibrated constants were observed on a model with hash {}, but this "
        "one has {}; make them for this model with `kvsweep calibrate`",
        ranged.substr(0, 12), unit.model_hash.substr(0, 12)));
  }
  return {};
}

Result<std::vector<wire::MapMeasurements>> EngineRunner::State::measure_maps(
    const wire::Unit& unit, const task::Task& task, const Prepared& prepared,
    engine::RunOptions run) {
  KVSWEEP_TRY(check_maps(unit));
  if (unit.mode == RunMode::generate) {
    run.stop = [&](int64_t index, const std::vector<int32_t>& tokens) {
      return ends_with_stop(model->tokenizer, tokens, prepared.examples[index].stops);
    };
  }
  KVSWEEP_ASSIGN(const auto outputs, model->engine.run(unit.maps, prepared.requests, run));
  std::vector<wire::MapMeasurements> measured;
  for (size_t map = 0; map < outputs.size(); ++map) {
    measured.push_back({.map_id = map_id(unit.maps[map])});
    for (size_t i = 0; i < outputs[map].size(); ++i) {
      KVSWEEP_ASSIGN(Measurement m,
                     measurement(unit, static_cast<int64_t>(i), task, prepared, outputs[map][i]));
      measured.back().measurements.push_back(std::move(m));
    }
  }
  return measured;
}

Result<Measurement> EngineRunner::State::measurement(const wire::Unit& unit, int64_t index,
                                                     const task::Task& task,
                                                     const Prepared& prepared,
                                                     const engine::SequenceOutput& output) const {
  const task::Example& example = prepared.examples[index];
  const engine::SequenceRequest& sequence = prepared.requests[index];
  Measurement m{.example = unit.examples[index], .example_hash = example.hash};
  m.prompt_tokens = static_cast<int64_t>(sequence.prompt.size());
  m.cache_bytes = output.cache_bytes;
  m.timings = {output.prefill_ms, output.decode_ms};
  m.draft = output.draft;
  if (unit.mode == RunMode::forced) {
    m.output_tokens = static_cast<int64_t>(sequence.reference.size());
    m.token_agreement = output.token_agreement;
    m.kl = output.kl;
    m.nll = output.nll;
    return m;
  }
  KVSWEEP_ASSIGN(const std::string text, model->tokenizer.decode(output.tokens, true));
  m.text = task::cut_at_stops(text, example.stops);
  m.tokens = output.tokens;
  m.output_tokens = static_cast<int64_t>(output.tokens.size());
  const task::Score score = task.score(example, m.text);
  m.answer = score.answer;
  m.exact_match = score.exact_match;
  m.strict_match = score.strict_match;
  return m;
}

}  // namespace kvsweep::service
