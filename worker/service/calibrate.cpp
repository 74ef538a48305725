#include "worker/service/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>

#include "core/file.hpp"
#include "core/geometry.hpp"
#include "core/ranges.hpp"
#include "core/study_spec.hpp"
#include "worker/engine/engine.hpp"
#include "worker/service/example_runs.hpp"
#include "worker/task/task.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::service {
namespace {

int64_t tokens_of(const ExampleRuns& runs, const std::vector<engine::SequenceOutput>& outputs) {
  int64_t tokens = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const engine::SequenceRequest& request = runs.requests()[i];
    tokens += static_cast<int64_t>(request.prompt.size() + request.reference.size() +
                                   outputs[i].tokens.size());
  }
  return tokens;
}

// The first examples of the task as a unit in its own mode.
wire::Unit unit_of(const TaskProtocol& protocol, int64_t examples) {
  wire::Unit unit;
  unit.protocol = protocol;
  unit.mode = mode_of(protocol, Metric::exact_match);
  unit.examples.resize(static_cast<size_t>(examples));
  std::iota(unit.examples.begin(), unit.examples.end(), 0);
  return unit;
}

Status check_ranges(const std::vector<float>& list, const char* side) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] >= kLeastRange && list[i] <= kMostRange) continue;
    return bad_input(fmt::format(
        "layer {}: the largest {} of these examples is {}, from which no constant follows; use "
        "other examples, or schemes that store their scales",
        i, side, list[i]));
  }
  return {};
}

}  // namespace

Status calibrate(const WorkerOptions& options, int threads) {
  KVSWEEP_ASSIGN(const TaskSpec spec, make_task({.name = options.text_kind,
                                                 .shots = options.text_shots,
                                                 .split = options.text_split,
                                                 .seed = options.text_seed,
                                                 .length = options.text_length}));
  KVSWEEP_ASSIGN(const BaseType base, base_type_from(options.base));
  KVSWEEP_ASSIGN(const std::string hash, model_hash(options.model));
  KVSWEEP_ASSIGN(auto loaded, text::Tokenizer::load(options.model));
  const auto tokenizer = std::make_shared<const text::Tokenizer>(std::move(loaded));
  KVSWEEP_ASSIGN(const auto task, task::open_task(spec.protocol, {options.data_dir, tokenizer}));
  engine::EngineOptions engine_options{.threads = threads};
  if (options.cache_budget_bytes > 0)
    engine_options.cache_budget_bytes = options.cache_budget_bytes;
  KVSWEEP_ASSIGN(auto engine, engine::Engine::load(options.model, engine_options));
  const int64_t examples = std::min(options.text_count, task->size());
  KVSWEEP_ASSIGN(const ExampleRuns runs,
                 ExampleRuns::make(unit_of(spec.protocol, examples), *task,
                                   {tokenizer.get(), nullptr, engine.geometry().max_context}));
  engine::RunOptions how{.base = base, .eos_ids = tokenizer->eos_ids()};
  how.stop = [&](int64_t index, const std::vector<int32_t>& tokens) {
    return runs.ends(index, tokens);
  };
  std::vector<engine::SequenceOutput> outputs;
  KVSWEEP_ASSIGN(ObservedRanges ranges, engine.observe_ranges(runs.requests(), how, &outputs));
  KVSWEEP_TRY(check_ranges(ranges.keys, "key"));
  KVSWEEP_TRY(check_ranges(ranges.values, "value"));
  ranges.model_hash = hash;
  const Json observed = {{"task", to_json(spec.protocol)},
                         {"examples", examples},
                         {"tokens", tokens_of(runs, outputs)},
                         {"baseline_kv", to_string(base)},
                         {"numerics_class", engine::Engine::numerics_class()}};
  const std::string text = to_json(ranges, observed).dump(2) + "\n";
  if (!options.out.empty()) return write_file_atomic(options.out, text);
  std::cout << text;
  return {};
}

}  // namespace kvsweep::service
