#include "worker/service/engine_runner.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "core/geometry.hpp"
#include "core/log.hpp"
#include "worker/engine/engine.hpp"
#include "worker/service/example_runs.hpp"
#include "worker/task/task.hpp"
#include "worker/text/chat_template.hpp"
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
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat;

  task::ModelText text() const {
    return {tokenizer.get(), chat ? &*chat : nullptr, engine.geometry().max_context};
  }
};

Result<std::optional<text::ChatTemplate>> load_chat(const std::string& dir) {
  auto chat = text::ChatTemplate::load(dir);
  if (chat.ok()) return std::optional<text::ChatTemplate>(std::move(chat).value());
  // A template that cannot be used matters only to tasks that need one.
  log::debug("worker", chat.error().message);
  return std::optional<text::ChatTemplate>();
}

}  // namespace

struct EngineRunner::State {
  EngineRunnerOptions options;
  std::optional<Model> model;
  std::map<std::string, std::unique_ptr<task::Task>> tasks;  // by protocol hash

  // Of the folder that a unit was last about; read for `describe` without the model.
  std::string tokenizer_dir;
  std::shared_ptr<const text::Tokenizer> tokenizer;

  Result<std::shared_ptr<const text::Tokenizer>> tokenizer_of(const std::string& dir);
  Result<const task::Task*> open_task(const wire::Unit& unit);
  Status load_model(const wire::Unit& unit);
  Result<wire::UnitResult> describe(const wire::Unit& unit, UnitCounters& counters,
                                    const std::atomic<bool>& cancel);
  Result<wire::UnitResult> measure(const wire::Unit& unit, UnitCounters& counters,
                                   const std::atomic<bool>& cancel);
  Status check_maps(const wire::Unit& unit) const;
  Result<std::vector<wire::MapMeasurements>> measure_maps(const wire::Unit& unit,
                                                          const ExampleRuns& runs,
                                                          engine::RunOptions run);
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

Result<std::shared_ptr<const text::Tokenizer>> EngineRunner::State::tokenizer_of(
    const std::string& dir) {
  if (!tokenizer || tokenizer_dir != dir) {
    KVSWEEP_ASSIGN(text::Tokenizer loaded, text::Tokenizer::load(dir));
    tokenizer = std::make_shared<const text::Tokenizer>(std::move(loaded));
    tokenizer_dir = dir;
  }
  return tokenizer;
}

Result<const task::Task*> EngineRunner::State::open_task(const wire::Unit& unit) {
  task::TaskInputs inputs{.data_dir = options.data_dir};
  std::string key = protocol_hash(unit.protocol, RunMode::generate);
  const Result<TaskInfo> info = task_info(unit.protocol.name);
  if (info.ok() && info->needs_tokenizer) {
    KVSWEEP_ASSIGN(inputs.tokenizer, tokenizer_of(unit.model_dir));
    key += "@" + unit.model_hash + "@" + unit.model_dir;
  }
  std::unique_ptr<task::Task>& task = tasks[key];
  if (!task) {
    KVSWEEP_ASSIGN(task, task::open_task(unit.protocol, inputs));
  }
  return static_cast<const task::Task*>(task.get());
}

Result<wire::UnitResult> EngineRunner::State::describe(const wire::Unit& unit,
                                                       UnitCounters& counters,
                                                       const std::atomic<bool>& cancel) {
  KVSWEEP_ASSIGN(const task::Task* const task, open_task(unit));
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
  tokenizer.reset();  // the folder may hold other files than when it was read
  KVSWEEP_ASSIGN(const auto texts, tokenizer_of(unit.model_dir));
  KVSWEEP_ASSIGN(auto chat, load_chat(unit.model_dir));
  KVSWEEP_ASSIGN(engine::Engine engine, engine::Engine::load(unit.model_dir, engine_options));
  if (texts->vocab_size() > engine.vocab_size()) {
    return bad_input(fmt::format(
        "the tokenizer of {} has {} tokens and its model {}: they do not belong together",
        unit.model_dir, texts->vocab_size(), engine.vocab_size()));
  }
  model.emplace(Model{unit.model_dir, hash, std::move(engine), texts, std::move(chat)});
  log::info("worker", fmt::format("loaded {} ({} layers)", unit.model_dir,
                                  model->engine.geometry().num_layers()));
  return {};
}

Result<wire::UnitResult> EngineRunner::State::measure(const wire::Unit& unit,
                                                      UnitCounters& counters,
                                                      const std::atomic<bool>& cancel) {
  KVSWEEP_TRY(load_model(unit));
  KVSWEEP_ASSIGN(const task::Task* const task, open_task(unit));
  KVSWEEP_ASSIGN(const ExampleRuns runs, ExampleRuns::make(unit, *task, model->text()));
  counters.total = static_cast<int64_t>(runs.requests().size() * unit.maps.size());
  wire::UnitResult result;
  result.model_hash = unit.model_hash;
  result.protocol_hash = protocol_hash(unit.protocol, unit.mode);
  result.base = unit.base;
  result.batch_invariant = model->engine.batch_invariant();
  engine::RunOptions run{
      .base = unit.base, .eos_ids = model->tokenizer->eos_ids(), .cancel = &cancel};
  run.progress = [&](int64_t finished, int64_t tokens) {
    counters.done = finished;
    counters.tokens = tokens;
  };
  KVSWEEP_ASSIGN(result.maps, measure_maps(unit, runs, std::move(run)));
  return result;
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
    const wire::Unit& unit, const ExampleRuns& runs, engine::RunOptions run) {
  KVSWEEP_TRY(check_maps(unit));
  if (unit.mode == RunMode::generate) {
    run.stop = [&](int64_t index, const std::vector<int32_t>& tokens) {
      return runs.ends(index, tokens);
    };
  }
  KVSWEEP_ASSIGN(const auto outputs, model->engine.run(unit.maps, runs.requests(), run));
  std::vector<wire::MapMeasurements> measured;
  for (size_t map = 0; map < outputs.size(); ++map) {
    KVSWEEP_ASSIGN(auto measurements, runs.measurements(outputs[map]));
    measured.push_back({map_id(unit.maps[map]), std::move(measurements)});
  }
  return measured;
}

}  // namespace kvsweep::service
